"""What every trainer needs to know about optimising."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator

from corral.errors import UsageError
from corral.training.configuration import Configuration, JsonObject
from corral.training.optimizers import check_optimizer
from corral.training.schedules import check_schedule


class OptimizationConfig(Configuration):
    """Fields shared by all trainers. Names and defaults are TRL's where TRL has them."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "activation_checkpointing": "gradient_checkpointing",
        "activation_checkpointing_kwargs": "gradient_checkpointing_kwargs",
    }

    output_dir: str | None = None
    """The run folder. None: ``runs/<model>-<method>``."""
    model_init_kwargs: JsonObject = Field(default_factory=dict)
    """Passed to ``from_pretrained`` when the model is given as text."""
    trust_remote_code: bool = False
    """Run code that a model, tokenizer or reward model brings with it."""
    seed: int = Field(default=42, ge=0, lt=2**32)
    """Every random choice of the run derives from it."""
    data_seed: int | None = Field(default=None, ge=0, lt=2**32)
    """The order of the data derives from it; None: from ``seed``."""
    max_steps: int = -1
    """Optimiser steps; -1: as many as ``num_train_epochs`` give."""
    num_train_epochs: float = Field(default=3.0, gt=0)
    """Passes over the data; used when ``max_steps`` is -1."""
    per_device_train_batch_size: int = Field(default=8, ge=1)
    """Rows per process and accumulation step."""
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    """Accumulation steps per optimiser step."""
    learning_rate: float = Field(default=1e-6, ge=0)
    """Peak learning rate."""
    lr_scheduler_type: Annotated[str, AfterValidator(check_schedule)] = "linear"
    """Shape of the learning rate over the run: a name of ``training.schedules.SCHEDULES``."""
    lr_scheduler_kwargs: JsonObject = Field(default_factory=dict)
    """Numbers of the schedule, such as ``{"min_lr": 1e-7}`` of "cosine_with_min_lr"."""
    warmup_steps: float = Field(default=0, ge=0, allow_inf_nan=False)
    """Steps over which the learning rate rises from 0; below 1: share of all steps. Overrides
    ``warmup_ratio`` when above 0."""
    warmup_ratio: float = Field(default=0.0, ge=0, le=1)
    """Share of all steps over which the learning rate rises from 0."""
    optim: Annotated[str, AfterValidator(check_optimizer)] = "adamw_torch_fused"
    """The optimiser: a name of ``training.optimizers.OPTIMIZERS``."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay; not applied to vectors (norms, biases)."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW's first-moment decay."""
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    """AdamW's second-moment decay."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """AdamW's denominator floor."""
    max_grad_norm: float = Field(default=1.0, ge=0)
    """Gradients are scaled down to this norm; 0: never."""
    router_aux_loss_coef: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Mixture of experts: weight of the loss that keeps all experts in use; None: the model's."""
    trained_blocks: int | None = Field(default=None, ge=1)
    """Train only the last so many transformer blocks and freeze the rest; None: train all."""
    bf16: bool | None = None
    """Mixed precision. None: on for GPUs, off for CPUs (where it is slower and coarser)."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass. None: on for GPUs, off for CPUs."""
    gradient_checkpointing_kwargs: JsonObject = Field(default_factory=dict)
    """Arguments of the model's ``gradient_checkpointing_enable``; ``use_reentrant`` is False unless
    they say otherwise."""
    token_budget: int | None = Field(default=None, ge=1)
    """Most tokens of one micro-batch; the gradient does not depend on it. None: 8192 on GPUs, 2048
    on CPUs (whose caches hold no more)."""
    packing: bool = False
    """Lay several rows behind each other in one sequence instead of padding them."""
    logits_chunk_tokens: int = Field(default=1024, ge=1)
    """Trained tokens whose logits exist at the same time."""
    use_cpu: bool = False
    """Train on the CPU although there is an accelerator."""
    ddp_find_unused_parameters: bool | None = None
    """Several processes: look for parameters without a gradient in each step; None: for models that
    read images, whose vision tower has none where a process has only text."""
    ddp_bucket_cap_mb: int | None = Field(default=None, ge=1)
    """Several processes: megabytes of gradients that are exchanged at once; None: torch's."""
    ddp_static_graph: bool | None = None
    """Several processes: promise that every step uses the same parameters; None: don't."""
    ddp_backend: str | None = None
    """Several processes: how they talk ("nccl", "gloo"); None: what suits the device."""
    ddp_timeout: int = Field(default=1800, ge=1)
    """Several processes: seconds that one waits for the others, so more than the slowest episode
    takes longer than the quickest generation."""
    save_strategy: Literal["no", "steps", "epoch"] = "steps"
    """When to write checkpoints besides the last one; "no": never, nor at the end."""
    save_steps: float = Field(default=500, ge=0, allow_inf_nan=False)
    """Steps between checkpoints, with ``save_strategy="steps"``; below 1: share of all steps; 0:
    only at the end."""
    save_total_limit: int | None = Field(default=2, ge=1)
    """Newest checkpoints to keep; None: all."""

    @field_validator("max_steps")
    @classmethod
    def _steps_are_positive_or_derived(cls, value: int) -> int:
        if value == 0 or value < -1:
            raise UsageError(f"max_steps={value}: give a positive number, or -1 to use epochs.")
        return value

    def loading_kwargs(self) -> dict[str, Any]:
        """What ``from_pretrained`` of the model gets."""
        if not self.trust_remote_code:
            return self.model_init_kwargs
        return {"trust_remote_code": True, **self.model_init_kwargs}
