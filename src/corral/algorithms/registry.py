"""The losses by name. A new one is a term in ``losses/`` and a line here."""

from dataclasses import dataclass

from corral.algorithms.losses.cispo import capped_policy_gradient
from corral.algorithms.losses.inputs import TokenTerm
from corral.algorithms.losses.sapo import soft_gate
from corral.algorithms.losses.surrogate import clipped_surrogate
from corral.algorithms.losses.vespo import weighted_policy_gradient
from corral.algorithms.normalisers import (
    Normaliser,
    constant_length,
    mean_of_row_means,
    mean_of_row_sums,
    mean_of_tokens,
)
from corral.errors import UsageError


@dataclass(frozen=True, slots=True)
class LossKind:
    """A loss: its term at each token, and how the terms become one number."""

    term: TokenTerm
    normalise: Normaliser
    multiplies_importance: bool = True
    """Whether the importance ratio is a factor of the term; vespo has its own use for it."""


LOSSES: dict[str, LossKind] = {
    "grpo": LossKind(clipped_surrogate, mean_of_row_means),
    "bnpo": LossKind(clipped_surrogate, mean_of_tokens),
    "dr_grpo": LossKind(clipped_surrogate, constant_length),
    "dapo": LossKind(clipped_surrogate, mean_of_tokens),
    "luspo": LossKind(clipped_surrogate, mean_of_row_sums),
    "cispo": LossKind(capped_policy_gradient, mean_of_tokens),
    "sapo": LossKind(soft_gate, mean_of_row_means),
    "vespo": LossKind(weighted_policy_gradient, mean_of_tokens, multiplies_importance=False),
}


def find_loss(name: str) -> LossKind:
    """The loss called ``name``."""
    if name not in LOSSES:
        raise UsageError(f"There is no loss {name!r}: choose one of {', '.join(sorted(LOSSES))}.")
    return LOSSES[name]
