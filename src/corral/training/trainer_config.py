"""What every trainer needs to know about what it logs, evaluates, saves and uploads."""

from importlib.util import find_spec
from typing import Any, Literal

from pydantic import Field, field_validator

from corral.errors import UsageError
from corral.training.optimization import OptimizationConfig

Moment = Literal["no", "steps", "epoch"]

TRACKERS = ("trackio", "wandb", "tensorboard")
"""What ``report_to`` may name."""


class TrainerConfig(OptimizationConfig):
    """Fields shared by all trainers. Names and defaults are TRL's where TRL has them."""

    # Log
    logging_strategy: Moment = "steps"
    """When trackers and ``trainer.state.log_history`` get numbers. ``metrics.jsonl`` in the run
    folder has every step."""
    logging_steps: float = Field(default=1, gt=0, allow_inf_nan=False)
    """Steps between two entries, with ``logging_strategy="steps"``; below 1: share of all steps."""
    logging_first_step: bool = False
    """Log step 1 whatever ``logging_steps`` says."""
    logging_dir: str | None = None
    """Where tensorboard's files go; None: a folder ``tensorboard`` in the run folder."""
    report_to: list[str] = Field(default_factory=list)
    """Trackers that get what is logged: "trackio", "wandb", "tensorboard", a list of them, "all"
    (those of them that are installed), or "none"."""
    run_name: str | None = None
    """The run's name in trackers; None: the name of the run folder."""
    project: str = "huggingface"
    """The project that trackers put the run into."""
    trackio_space_id: str | None = None
    """Space that trackio sends to."""
    trackio_bucket_id: str | None = None
    """Bucket that trackio keeps its data in."""
    trackio_static_space_id: str | Literal[False] | None = None
    """Space that shows the run when it is done; False: none."""

    # Evaluate
    eval_strategy: Moment = "no"
    """When ``eval_dataset`` is evaluated during training."""
    eval_steps: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Steps between evaluations; below 1: share of all steps; None: ``logging_steps``."""
    eval_delay: float = Field(default=0, ge=0)
    """Steps (or epochs, as ``eval_strategy`` says) before the first evaluation."""
    eval_on_start: bool = False
    """Evaluate before the first step as well."""
    per_device_eval_batch_size: int = Field(default=8, ge=1)
    """Episodes (GRPO) or rows (SFT) that a process evaluates at the same time."""
    metric_for_best_model: str | None = None
    """The metric that callbacks such as transformers' EarlyStoppingCallback watch."""
    greater_is_better: bool | None = None
    """Whether more of ``metric_for_best_model`` is better; None: unless its name ends in "loss"."""

    # Upload
    push_to_hub: bool = False
    """Upload the model to the Hugging Face Hub, as ``hub_strategy`` says."""
    hub_model_id: str | None = None
    """The repository, as ``owner/name``; None: the run folder's name under the token's owner."""
    hub_strategy: Literal["end", "every_save", "checkpoint", "all_checkpoints"] = "every_save"
    """When to upload, and whether with checkpoints."""
    hub_token: str | None = Field(default=None, repr=False, exclude=True)
    """The token to upload with; None: the one that ``hf auth login`` stored."""
    hub_private_repo: bool | None = None
    """Whether a repository that is created is private; None: the owner's default."""
    hub_always_push: bool = False
    """Upload although the last upload has not ended."""
    hub_revision: str | None = None
    """The branch to upload to; None: main."""

    @field_validator("report_to", mode="before")
    @classmethod
    def _names_of_trackers(cls, value: Any) -> Any:
        names = [value] if isinstance(value, str) else list(value or ())
        if "all" in names:
            return [name for name in TRACKERS if find_spec(name) is not None]
        names = [name for name in names if name != "none"]
        unknown = [name for name in names if name not in TRACKERS]
        if unknown:
            raise UsageError(
                f"report_to={value!r}: {unknown[0]!r} is no tracker that Corral knows. Choose from "
                f'{", ".join(TRACKERS)}, "all" or "none", or pass tracker=... to the trainer.'
            )
        return names
