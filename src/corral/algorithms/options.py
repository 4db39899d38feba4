"""The numbers that shape a loss, with the reference's defaults."""

from dataclasses import dataclass
from enum import StrEnum

from corral.errors import UsageError


class RatioLevel(StrEnum):
    """What the policy ratio is taken over."""

    TOKEN = "token"
    """Each token has its own."""
    SEQUENCE = "sequence"
    """One a row: the geometric mean over its tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """Options of all losses, named as in TRL's configuration; each loss reads the ones it knows."""

    epsilon: float = 0.2
    """How far below 1 the ratio may go before it is clipped."""
    epsilon_high: float | None = None
    """How far above 1; None means ``epsilon``. For cispo it is the cap on the ratio itself."""
    delta: float | None = None
    """Cap on the unclipped ratio; None means none."""
    beta: float = 0.0
    """Weight of the KL divergence from the reference model."""
    use_bias_correction_kl: bool = True
    """Multiply the KL estimate by the policy ratio."""
    importance_sampling_level: RatioLevel | str = RatioLevel.TOKEN
    """Whether the policy ratio is taken at each token or over each row."""
    max_completion_length: int = 512
    """The constant length dr_grpo divides by."""
    off_policy_mask_threshold: float | None = None
    """Rows with a negative advantage that drifted further than this are dropped."""
    top_entropy_quantile: float = 1.0
    """Share of the tokens, those of highest entropy, that are trained."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    use_adaptive_entropy: bool = False
    """The weight is moved from step to step, by an entropy that is measured even where it is 0."""
    sapo_temperature_pos: float = 1.0
    """Steepness of sapo's gate where the advantage is positive."""
    sapo_temperature_neg: float = 1.05
    """Steepness of sapo's gate elsewhere."""
    vespo_k_pos: float = 2.0
    """Power of vespo's weight where the advantage is not negative."""
    vespo_lambda_pos: float = 3.0
    """Decay of vespo's weight where the advantage is not negative."""
    vespo_k_neg: float = 3.0
    """Power of vespo's weight where the advantage is negative."""
    vespo_lambda_neg: float = 2.0
    """Decay of vespo's weight where the advantage is negative."""

    def __post_init__(self) -> None:
        """Reject what no loss can use."""
        object.__setattr__(
            self, "importance_sampling_level", RatioLevel(self.importance_sampling_level)
        )
        if not 0.0 <= self.top_entropy_quantile <= 1.0:
            raise UsageError(f"top_entropy_quantile is {self.top_entropy_quantile}: choose 0 to 1.")
        if self.max_completion_length < 1:
            raise UsageError(
                f"max_completion_length is {self.max_completion_length}: choose 1 or more."
            )

    def upper(self) -> float:
        """The upper epsilon that applies."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high

    def is_sequence_level(self) -> bool:
        """Whether the policy ratio is one a row."""
        return self.importance_sampling_level is RatioLevel.SEQUENCE
