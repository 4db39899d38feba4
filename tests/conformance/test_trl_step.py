"""Optimiser steps equal to those of TRL 1.16, in one process and in two.

Both libraries train the same tiny random model in float32 on the same rollouts, which come through
``rollout_func``. Some rewards are None, and some completions have no reward at all.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from support.launch import run_module
from support.once import made_once
from support.tiny_models import save_tiny_model

RELATIVE = 1e-5
LOSS_NOISE = 5e-7
"""A sum of advantages is 0 but for rounding, which has no relative size."""
WEIGHT_NOISE = 1e-7
"""A ten-thousandth of what a step moves a weight by."""

Results = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Results:
    def train(out: Path) -> None:
        model = save_tiny_model(out.parent / f"model-{out.stem}")
        run_module("support.trl_step_run", model, out, processes=request.param, timeout_s=400)

    name = f"trl-steps-{request.param}.pt"
    return torch.load(made_once(tmp_path_factory, worker_id, name, train))


def steps(results: Results) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each case's name, and each step of both libraries."""
    for name, case in results.items():
        sides = [
            [
                {key: values[step] for key, values in side.items()}
                for step in range(len(side["losses"]))
            ]
            for side in (case["corral"], case["trl"])
        ]
        assert len(sides[0]) == len(sides[1]) >= 2, name
        for number, (ours, theirs) in enumerate(zip(*sides, strict=True), 1):
            yield f"{name}, step {number}", ours, theirs


pytestmark = [
    pytest.mark.timeout(500),
    pytest.mark.skipif(not all(map(find_spec, ("trl", "datasets"))), reason="TRL is not installed"),
]


@pytest.mark.contract(40, 41)
def test_steps_equal_those_of_trl(results: Results) -> None:
    for name, ours, theirs in steps(results):
        assert [text for text, _ in ours["advantages"]] == [
            text for text, _ in theirs["advantages"]
        ]
        found, expected = ([value for _, value in side["advantages"]] for side in (ours, theirs))
        assert found == pytest.approx(expected, rel=RELATIVE, abs=1e-6), name
        assert ours["losses"] == pytest.approx(theirs["losses"], rel=RELATIVE, abs=LOSS_NOISE), name
        assert ours["norms"] == pytest.approx(theirs["norms"], rel=RELATIVE), name
        torch.testing.assert_close(
            ours["weights"],
            theirs["weights"],
            rtol=RELATIVE,
            atol=WEIGHT_NOISE,
            msg=lambda text, name=name: f"{name}: {text}",
        )
        # In a second pass over a generation, Corral does not say again how it was played.
        played = {metric: theirs["metrics"][metric] for metric in ours["metrics"]}
        assert len(played) >= 8 or "two passes" in name
        assert ("entropy_coef" in played) == ("entropy" in name)
        assert ("aux_loss" in played) == ("experts" in name)
        assert ours["metrics"] == pytest.approx(played, rel=RELATIVE, abs=1e-6), name


def test_the_cases_do_differ(results: Results) -> None:
    """Equality says little about options that change nothing."""
    last = {
        name: torch.cat([each.flatten() for each in case["corral"]["weights"][1].values()])
        for name, case in results.items()
    }
    # In one micro-batch a process and with equal counts, bnpo is dapo; experts are other weights.
    alike = ("bnpo", "micro", "experts")
    names = [name for name in last if not any(word in name for word in alike)]
    for index, name in enumerate(names):
        for other in names[:index]:
            assert (last[name] - last[other]).abs().max() > 10 * WEIGHT_NOISE, (name, other)
