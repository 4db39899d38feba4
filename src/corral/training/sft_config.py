"""Configuration of :class:`corral.SFTTrainer`."""

from typing import Any

from pydantic import Field

from corral.training.optimization import OptimizationConfig


class SFTConfig(OptimizationConfig):
    """How to learn from finished conversations. Names and defaults are TRL's where TRL has them."""

    learning_rate: float = Field(default=2e-5, ge=0)
    """Peak learning rate."""
    max_length: int | None = Field(default=1024, ge=1)
    """Longest conversation in tokens; longer ones are cut at the end. None: never cut."""
    shuffle_dataset: bool = True
    """Draw conversations in a random order (from ``seed``), anew each epoch."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Extra arguments of every template rendering, such as ``enable_thinking``."""
    model_init_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Passed to ``from_pretrained`` when the model is given as text."""
    disable_dropout: bool = False
    """Set every dropout of the model to 0."""
