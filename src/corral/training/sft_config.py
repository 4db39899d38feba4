"""Configuration of :class:`corral.SFTTrainer`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from corral.training.configuration import JsonObject
from corral.training.foreign import SFT_SETTINGS, ForeignSetting
from corral.training.trainer_config import TrainerConfig


class SFTConfig(TrainerConfig):
    """How to learn from finished texts. Names and defaults are TRL's where TRL has them."""

    FOREIGN: ClassVar[Mapping[str, ForeignSetting]] = SFT_SETTINGS

    learning_rate: float = Field(default=2e-5, ge=0)
    """Peak learning rate."""

    # Data
    dataset_text_field: str = "text"
    """Column of plain text."""
    max_length: int | None = Field(default=1024, ge=1)
    """Longest row in tokens; longer ones are cut. None: never cut. With ``packing`` the length of
    a block."""
    truncation_mode: Literal["keep_start", "keep_end"] = "keep_start"
    """Which end of a row that is too long is kept."""
    shuffle_dataset: bool = False
    """Shuffle the rows once (from ``seed``) before they are packed and ordered."""
    train_sampling_strategy: Literal["random", "sequential"] = "random"
    """Take rows (or blocks) in a random order, anew each epoch, or as they come."""
    packing: bool = False
    """Join rows to blocks of ``max_length`` tokens, which batch sizes then count. Rows of a block
    do not see each other (but see ``packing_strategy``)."""
    packing_strategy: Literal["bfd", "bfd_split", "wrapped"] = "bfd"
    """With ``packing``: put whole rows where they fit best and cut those longer than
    ``max_length``; or split those; or join all rows and cut the whole into blocks, within which
    rows see each other."""
    eval_packing: bool | None = None
    """Pack the rows of ``eval_dataset``; None: as ``packing``."""
    padding_free: bool = False
    """Lay the rows of a micro-batch behind each other instead of padding them; same numbers."""
    eos_token: str | None = None
    """Token that ends plain texts and turns; None: the tokenizer's."""
    chat_template_path: str | None = None
    """A Jinja file, or a model folder or hub id, whose chat template is used (and saved)."""
    chat_template_kwargs: JsonObject = Field(default_factory=dict)
    """Extra arguments of every template rendering, such as ``enable_thinking``. A row's column of
    the same name adds to them."""

    # Loss
    completion_only_loss: bool | None = None
    """Learn what follows the prompt; None: where the data has prompts and completions."""
    assistant_only_loss: bool = False
    """Learn what assistants say in conversations: turns as they would be played, through the stop
    token."""
    loss_type: Literal["nll", "dft"] = "nll"
    """Negative log-likelihood, or the same weighed by the token's probability (dynamic
    fine-tuning, https://huggingface.co/papers/2508.05629)."""
    disable_dropout: bool = False
    """Set every dropout of the model to 0."""

    @field_validator("loss_type", mode="before")
    @classmethod
    def _chunked_is_how_it_is_computed(cls, value: object) -> object:
        return "nll" if value == "chunked_nll" else value

    @model_validator(mode="after")
    def _blocks_have_a_length(self) -> "SFTConfig":
        if self.packing and self.max_length is None:
            raise ValueError("packing=True needs max_length, which is the length of a block")
        return self
