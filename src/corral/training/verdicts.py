"""What the numbers of a step mean, in one line, when they mean it for the first time.

A loss of 0 may be right: while the policy that sampled is the one that learns, every ratio is 1 and
the advantages of a group add up to 0. It may also say that nothing is learned. The number is the
same, so what stands beside it decides.
"""

import logging
from collections.abc import Iterator, Mapping

from corral.training.grpo_config import GRPOConfig
from corral.training.learner import StepNumbers

logger = logging.getLogger(__name__)

LARGEST_DIFFERENCE = 0.1
"""Nats a token by which an engine's logprobs may differ from the model's, on average, before any
update. Rounding to bfloat16 makes hundredths; a temperature that one of them leaves out, tenths."""

PATIENCE = 3
"""Generations in a row without a difference between rewards, after which that is told."""

_DIFFERENCE = "sampling/sampling_logp_difference/mean"
_RATIO = "sampling/importance_sampling_ratio/max"

Numbers = Mapping[str, float]


class Verdicts:
    """Judges the first step that each generation of a run feeds; says each thing once."""

    def __init__(self, args: GRPOConfig) -> None:
        self._args = args
        self._said: set[str] = set()
        self._is_first = True
        self._flat_in_a_row = 0

    def judge(self, generation: Numbers, learned: Numbers, step: StepNumbers, number: int) -> None:
        """Say what is worth knowing.

        Args:
            generation: The numbers of what was played.
            learned: The metrics of the step; empty where no row could move the weights.
            number: Optimiser steps so far, this one included.
        """
        is_flat = generation["frac_reward_zero_std"] == 1 and generation["tokens/trainable"] > 0
        self._flat_in_a_row = self._flat_in_a_row + 1 if is_flat else 0
        for name, level, text in self._verdicts(generation, learned, step):
            if name not in self._said:
                self._said.add(name)
                logger.log(level, "Step %d: %s", number, text)
        self._is_first = False

    def _verdicts(
        self, generation: Numbers, learned: Numbers, step: StepNumbers
    ) -> Iterator[tuple[str, int, str]]:
        difference = learned.get(_DIFFERENCE, 0.0)
        if (
            self._is_first
            and difference > LARGEST_DIFFERENCE
            and not self._args.is_sampling_filtered()
        ):
            yield "mismatch", logging.WARNING, self._mismatch(difference)
        if self._flat_in_a_row >= PATIENCE and not learned:
            yield "flat", logging.WARNING, _flat(generation)
        if learned and step.grad_norm == 0:
            yield "no gradient", logging.WARNING, _no_gradient(learned)
        if learned and step.grad_norm > 0 and abs(step.loss) < 1e-6:
            yield (
                "normal",
                logging.INFO,
                f"a loss of {step.loss:.1g} is right: the weights that sampled are those that "
                "learn, so the advantages of each group add up to 0. The gradient does not "
                f"(its norm is {step.grad_norm:.3g}).",
            )

    def _mismatch(self, difference: float) -> str:
        return (
            f"before any update, the logprobs of what was sampled differ from the model's own by "
            f"{difference:.2g} a token (mean). They must be those of the distribution that was "
            f"sampled from, at temperature={self._args.temperature}, by these weights: as it is, "
            "the importance correction weighs what it should not."
        )


def _flat(generation: Numbers) -> str:
    reward = generation.get("reward", 0.0)
    return (
        f"for {PATIENCE} generations in a row all rewards of each group were equal (mean "
        f"{reward:.3g}), so there was nothing to compare and the loss is 0. If it stays so, make "
        "tasks easier or harder, reward parts of a solution, or raise num_generations or "
        "temperature."
    )


def _no_gradient(learned: Numbers) -> str:
    if learned.get(_RATIO) == 0:
        return (
            "nothing is learned although rewards differ: the importance correction dropped every "
            f"row, as sampled logprobs differ from the model's by {learned.get(_DIFFERENCE, 0):.2g}"
            ' a token (mean). Mend that, or set importance_sampling_mode="token_truncate".'
        )
    return (
        "nothing is learned although rewards differ: the gradient is 0. Every token is clipped or "
        "masked, or no weight that is trained has a part in the answer."
    )
