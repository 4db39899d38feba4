"""The weight of an adaptive entropy bonus, step by step."""

from typing import Any

import pytest

from corral import GRPOConfig
from corral.training.entropy_control import EntropyControl


def control(**options: Any) -> EntropyControl:
    chosen = {"entropy_coef": 0.1, "entropy_coef_delta": 0.05, "entropy_target": 1.0}
    return EntropyControl(GRPOConfig(use_adaptive_entropy=True, **(chosen | options)))


def walked(made: EntropyControl, *entropies: float) -> list[tuple[float, float]]:
    """What is applied, and where the weight is, after each of the entropies."""
    found: list[tuple[float, float]] = []
    for entropy in entropies:
        made.saw(entropy)
        found.append((round(made.applied(), 9), round(made.weight, 9)))
    return found


def test_the_first_step_has_no_bonus() -> None:
    assert (control().applied(), control().weight) == (0.0, 0.1)


def test_low_entropy_raises_the_weight_and_high_entropy_lowers_it() -> None:
    assert walked(control(), 0.5, 1.0, 1.1, 0.9) == [
        (0.15, 0.15),
        (0.2, 0.2),  # at the target counts as low
        (0.0, 0.15),  # above it the weight goes down, and is not applied
        (0.2, 0.2),
    ]


@pytest.mark.parametrize(("entropy", "end"), [(0.5, 0.22), (2.0, 0.03)])
def test_the_weight_stays_within_its_bounds(entropy: float, end: float) -> None:
    made = control(entropy_coef_min=0.03, entropy_coef_max=0.22)
    assert walked(made, *[entropy] * 5)[-1][1] == end


def test_a_checkpoint_holds_all_that_it_remembers() -> None:
    first, second = control(), control()
    first.saw(0.5)
    for name, value in first.tensors.items():
        second.tensors[name].copy_(value)
    assert walked(second, 0.7, 3.0) == walked(first, 0.7, 3.0)
