"""Configuration of :class:`corral.GRPOTrainer`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from corral.algorithms import LOSSES
from corral.errors import UsageError
from corral.training.configuration import JsonObject, read_json_object
from corral.training.foreign import GRPO_SETTINGS, ForeignSetting
from corral.training.trainer_config import TrainerConfig

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What ``generation_kwargs`` may set."""


class GRPOConfig(TrainerConfig):
    """How to play, score and learn. Names and defaults are TRL's where TRL has them.

    Batch arithmetic, with P ``per_device_train_batch_size``, W processes, K
    ``steps_per_generation``: one generation plays ``generation_batch_size`` = P·W·K episodes, in
    groups of ``num_generations``. K defaults to ``gradient_accumulation_steps``: one generation,
    one optimiser step.
    """

    FOREIGN: ClassVar[Mapping[str, ForeignSetting]] = GRPO_SETTINGS
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        **TrainerConfig.OTHER_NAMES,
        "vllm_importance_sampling_correction": "importance_sampling_correction",
        "vllm_importance_sampling_mode": "importance_sampling_mode",
        "vllm_importance_sampling_clip_max": "importance_sampling_clip_max",
        "vllm_importance_sampling_clip_min": "importance_sampling_clip_min",
        "vllm_importance_sampling_cap": "importance_sampling_clip_max",
    }

    # Play
    num_generations: int = Field(default=8, ge=2)
    """Episodes of one task that are compared with each other."""
    num_generations_eval: int | None = Field(default=None, ge=1)
    """Episodes of each task when evaluating; None: ``num_generations``."""
    generation_batch_size: int | None = Field(default=None, ge=1)
    """Episodes of one generation over all processes; None: derived."""
    steps_per_generation: int | None = Field(default=None, ge=1)
    """Accumulation steps fed by one generation; None: derived."""
    num_iterations: int = Field(default=1, ge=1)
    """Passes over each generation."""
    max_completion_length: int = Field(default=512, ge=1)
    """Tokens of a whole episode after its prompt: model and tool tokens together."""
    max_turn_length: int | None = Field(default=None, ge=1)
    """Tokens of one model turn; None: what is left of the episode."""
    max_tool_calling_iterations: int | None = Field(default=None, ge=0)
    """Rounds of tool calls of an episode; None: no limit."""
    episode_timeout_s: float | None = Field(default=None, gt=0)
    """Seconds an episode may take; it is then scored as it stands."""
    stop_when_done: bool = False
    """End an episode when the environment's ``done`` is true, without a last word of the model."""
    episode_retries: int = Field(default=5, ge=0)
    """Fresh starts of an episode after an infrastructure fault, each after a pause twice as long as
    the one before: 0.5 s first, 30 s at most."""
    infrastructure_patience_s: float = Field(default=600.0, ge=0)
    """Seconds to wait, playing again now and then, while every episode fails for its
    infrastructure; then the run ends, after saving what it has learned."""
    shuffle_dataset: bool = True
    """Draw tasks in a random order (from ``seed``) instead of the data's."""
    chat_template_kwargs: JsonObject = Field(default_factory=dict)
    """Extra arguments of every template rendering, such as ``enable_thinking``."""
    disable_dropout: bool = True
    """Set every dropout of the model to 0, as in sampling: else the policy that plays is not the
    one that is trained, and the importance correction weighs the difference down to nothing."""
    cast_lm_head_to_fp32: bool = False
    """Compute logits in float32 where the rest of the model computes in something coarser."""
    max_batch: int = Field(default=64, ge=1)
    """Conversations the built-in engine decodes at the same time."""

    # Sample
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Logits are divided by it, in sampling and in the loss."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Smallest probability mass kept, most likely tokens first."""
    top_k: int = Field(default=0, ge=0)
    """Most likely tokens kept; 0: all."""
    min_p: float | None = Field(default=None, ge=0, le=1)
    """Tokens below this share of the likeliest token's probability are dropped."""
    repetition_penalty: float = Field(default=1.0, gt=0)
    """Divides (positive) or multiplies (negative) the logits of ids already present."""
    generation_kwargs: JsonObject = Field(default_factory=dict, frozen=True)
    """The same five settings once more; what is given here wins."""

    # Learn
    loss_type: str = "dapo"
    """Name of a loss in ``corral.algorithms.LOSSES``."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL term to the reference model; 0: no reference model."""
    sync_ref_model: bool = False
    """Let the reference model follow the policy instead of staying where training began."""
    ref_model_mixup_alpha: float = Field(default=0.6, ge=0, le=1)
    """The policy's share when it follows: reference ← alpha · policy + (1 − alpha) · reference."""
    ref_model_sync_steps: int = Field(default=512, ge=1)
    """Steps from one move to the next."""
    epsilon: float = Field(default=0.2, ge=0)
    """Lower clip of the ratio."""
    epsilon_high: float | None = Field(default=None, ge=0)
    """Upper clip of the ratio (for cispo the cap itself); None: ``epsilon``."""
    delta: float | None = Field(default=None, gt=0)
    """Cap of the ratio where the advantage is negative (two-sided clip); None: off."""
    importance_sampling_level: Literal["token", "sequence"] = "token"
    """Ratio of each token, or one of the whole sequence."""
    use_bias_correction_kl: bool = True
    """Multiply the KL term by the ratio, which makes its gradient unbiased off policy."""
    sapo_temperature_neg: float = Field(default=1.05, gt=0)
    """sapo: temperature where the advantage is not positive."""
    sapo_temperature_pos: float = Field(default=1.0, gt=0)
    """sapo: temperature where the advantage is positive."""
    vespo_k_pos: float = 2.0
    """vespo: power of the weight, advantage not negative."""
    vespo_lambda_pos: float = 3.0
    """vespo: decay of the weight, advantage not negative."""
    vespo_k_neg: float = 3.0
    """vespo: power of the weight, advantage negative."""
    vespo_lambda_neg: float = 2.0
    """vespo: decay of the weight, advantage negative."""
    top_entropy_quantile: float = Field(default=1.0, gt=0, le=1)
    """Share of the highest-entropy tokens that get a gradient."""
    entropy_coef: float = Field(default=0.0, allow_inf_nan=False)
    """Weight of the entropy bonus, in nats a token; where it begins if it is adaptive."""
    use_adaptive_entropy: bool = False
    """Move the weight after each step: up while the mean entropy is at most its target, down while
    it is above, where the bonus is also left out."""
    entropy_coef_min: float = Field(default=0.0, allow_inf_nan=False)
    """Where an adaptive weight ends going down."""
    entropy_coef_max: float = Field(default=1.0, allow_inf_nan=False)
    """Where an adaptive weight ends going up."""
    entropy_coef_delta: float = Field(default=0.005, ge=0, allow_inf_nan=False)
    """How far an adaptive weight moves in a step."""
    entropy_target: float = Field(default=0.2, ge=0)
    """Mean entropy (nats a token) that an adaptive weight aims at."""
    off_policy_mask_threshold: float | None = None
    """Drop sequences with negative advantage that drifted further than this; None: keep all."""
    mask_truncated_completions: bool = False
    """Leave episodes that a token limit cut out of the loss and its normaliser."""
    importance_sampling_correction: bool = True
    """Weigh tokens by learner probability over sampling probability, per ``..._mode``. Without
    effect where sampling keeps a part of the distribution only (top_p, top_k, min_p, penalty)."""
    importance_sampling_mode: Literal[
        "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
    ] = "sequence_mask"
    """Ratio per token or of the whole sequence; outside the clip it is cut, or dropped."""
    importance_sampling_clip_max: float | None = Field(default=3.0, gt=0)
    """Upper end of the correction; None: open."""
    importance_sampling_clip_min: float | None = Field(default=None, ge=0)
    """Lower end of the correction; None: open."""

    # Score
    reward_weights: list[Annotated[float, Field(allow_inf_nan=False)]] | None = None
    """One weight for each reward function; None: all 1. An environment's own reward weighs 1."""
    multi_objective_aggregation: Literal["sum_then_normalize", "normalize_then_sum"] = (
        "sum_then_normalize"
    )
    """Add the rewards up and compare, or compare each reward on its own and add up."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """Whose standard deviation divides the advantages. True and False mean group and none."""

    # Leave behind
    save_episodes: bool = True
    """Write every episode with its tokens into the run folder."""
    log_completions: bool = False
    """Show some completions on the console at each logged step, write all of them as Parquet files
    into the run folder, and send them as a table to the trackers."""
    num_completions_to_print: int | None = Field(default=None, ge=1)
    """Completions to show on the console; None: all."""
    log_unique_prompts: bool = False
    """Keep only the first completion of each prompt in the table."""
    log_multimodal: bool = True
    """Keep images in the table."""
    log_completions_hub_repo: str | None = None
    """Dataset repository that the Parquet files are uploaded to."""

    @field_validator("scale_rewards", mode="before")
    @classmethod
    def _scale_may_be_a_bool(cls, value: object) -> object:
        return (
            {True: "group", False: "none"}.get(value, value) if isinstance(value, bool) else value
        )

    @field_validator("loss_type")
    @classmethod
    def _loss_exists(cls, value: str) -> str:
        if value not in LOSSES:
            raise UsageError(f"loss_type={value!r}: choose one of {', '.join(sorted(LOSSES))}.")
        return value

    def is_sampling_filtered(self) -> bool:
        """Whether tokens are drawn from something else than the model's (tempered) distribution."""
        is_cut = self.top_p < 1 or self.top_k > 0 or bool(self.min_p)
        return is_cut or self.repetition_penalty != 1

    @model_validator(mode="before")
    @classmethod
    def _generation_kwargs_win(cls, given: Any) -> Any:
        # While a field is assigned, what is given is the configuration itself.
        extra = given.get("generation_kwargs") if isinstance(given, Mapping) else None
        extra = read_json_object(extra)
        if not isinstance(extra, Mapping):
            return given
        settings = {name: value for name, value in extra.items() if name != "do_sample"}
        unknown = [name for name in settings if name not in _SAMPLING]
        if unknown or extra.get("do_sample", True) is not True:
            wrong = unknown[0] if unknown else "do_sample"
            raise UsageError(
                f"generation_kwargs: {wrong}={extra[wrong]!r:.60} is refused: the built-in engine "
                f"reads {', '.join(_SAMPLING)}. Tokens are limited by max_completion_length."
            )
        return {**given, **settings}

    @model_validator(mode="after")
    def _completions_are_logged_before_they_are_uploaded(self) -> "GRPOConfig":
        if self.log_completions_hub_repo is not None and not self.log_completions:
            raise UsageError(
                f"log_completions_hub_repo={self.log_completions_hub_repo!r} needs "
                "log_completions=True: nothing is written that could be uploaded."
            )
        return self

    @model_validator(mode="after")
    def _correction_has_a_range(self) -> "GRPOConfig":
        low, high = self.importance_sampling_clip_min, self.importance_sampling_clip_max
        if low is not None and high is not None and low >= high:
            raise UsageError(
                f"importance_sampling_clip_min={low} must be less than "
                f"importance_sampling_clip_max={high}."
            )
        mode, is_open = self.importance_sampling_mode, low is None and high is None
        if self.importance_sampling_correction and is_open and mode.endswith("truncate"):
            raise UsageError(
                f"importance_sampling_mode={mode!r} without importance_sampling_clip_min and "
                "importance_sampling_clip_max has nothing to cut at: set one of them."
            )
        return self

    @model_validator(mode="after")
    def _batch_is_given_once(self) -> "GRPOConfig":
        if self.generation_batch_size is not None and self.steps_per_generation is not None:
            raise UsageError(
                f"generation_batch_size={self.generation_batch_size} and steps_per_generation="
                f"{self.steps_per_generation} are two ways to say the same thing: give one."
            )
        return self
