"""Configuration of :class:`corral.SFTTrainer`."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from corral.training.configuration import JsonObject
from corral.training.foreign import SFT_SETTINGS, ForeignSetting
from corral.training.trainer_config import TrainerConfig


class SFTConfig(TrainerConfig):
    """How to learn from finished conversations. Names and defaults are TRL's where TRL has them."""

    FOREIGN: ClassVar[Mapping[str, ForeignSetting]] = SFT_SETTINGS

    learning_rate: float = Field(default=2e-5, ge=0)
    """Peak learning rate."""
    max_length: int | None = Field(default=1024, ge=1)
    """Longest conversation in tokens; longer ones are cut at the end. None: never cut."""
    shuffle_dataset: bool = True
    """Draw conversations in a random order (from ``seed``), anew each epoch."""
    chat_template_kwargs: JsonObject = Field(default_factory=dict)
    """Extra arguments of every template rendering, such as ``enable_thinking``."""
    disable_dropout: bool = False
    """Set every dropout of the model to 0."""
