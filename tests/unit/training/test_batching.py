from itertools import product
from typing import Any

import pytest

from corral.errors import UsageError
from corral.training.batching import BatchPlan, plan_batches
from corral.training.grpo_config import GRPOConfig


def plan(processes: int = 1, **options: Any) -> BatchPlan:
    return plan_batches(GRPOConfig(**options), processes)


@pytest.mark.contract(1)
def test_by_default_a_generation_feeds_one_step() -> None:
    made = plan(per_device_train_batch_size=4, gradient_accumulation_steps=4, num_generations=8)
    assert (made.tasks, made.members, made.slices, made.passes) == (2, 8, 1, 1)
    assert (made.episodes, made.steps) == (16, 1)


@pytest.mark.contract(1)
def test_a_generation_may_feed_several_steps_several_times() -> None:
    made = plan(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        steps_per_generation=6,
        num_generations=3,
        num_iterations=2,
    )
    assert (made.tasks, made.slices, made.steps) == (4, 3, 6)


@pytest.mark.contract(1)
def test_the_size_of_a_generation_says_the_same_as_its_steps() -> None:
    options: dict[str, Any] = {"per_device_train_batch_size": 4, "num_generations": 4}
    by_size = plan(2, generation_batch_size=24, **options)
    assert by_size == plan(2, steps_per_generation=3, **options)


@pytest.mark.contract(1)
@pytest.mark.report("P059")
def test_every_combination_gives_whole_groups_or_a_clear_error() -> None:
    combinations = product((1, 2, 3, 8), (1, 2, 4), (1, 2, 3), (2, 3, 8), (None, 1, 2, 4))
    refused = 0
    for rows, processes, accumulation, members, steps in combinations:
        options = {
            "per_device_train_batch_size": rows,
            "gradient_accumulation_steps": accumulation,
            "num_generations": members,
            "steps_per_generation": steps,
        }
        try:
            made = plan(processes, **options)
        except UsageError:
            refused += 1
            continue
        # Whole groups on each process, and as many episodes a step as were asked for.
        assert made.episodes == made.tasks * members
        assert made.tasks % processes == 0
        assert made.episodes == rows * processes * accumulation * made.slices
        if steps is not None and steps >= accumulation:
            assert made.episodes == rows * processes * steps
    assert 0 < refused < 4 * 3 * 3 * 3 * 4


@pytest.mark.parametrize(
    ("processes", "options", "text"),
    [
        (1, {"num_generations": 3}, r"has 8 episodes .* num_generations=3 does not divide"),
        (2, {"generation_batch_size": 8}, "generation_batch_size=8 is not a multiple of the 16"),
        (2, {"num_generations": 16}, "1 groups for 2 processes: .* multiple of 32 episodes"),
        (
            1,
            {"steps_per_generation": 3, "gradient_accumulation_steps": 2},
            "steps_per_generation=3 and gradient_accumulation_steps=2",
        ),
    ],
)
@pytest.mark.contract(1)
@pytest.mark.report("P059")
def test_what_does_not_fit_is_told_with_its_numbers(
    processes: int, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        plan(processes, **options)
