"""A line about what a step's numbers mean, said once."""

import logging
from typing import Any

import pytest

from corral import GRPOConfig
from corral.training.learner import StepNumbers
from corral.training.verdicts import PATIENCE, Verdicts

PLAYED = {"frac_reward_zero_std": 0.5, "tokens/trainable": 100.0, "reward": 0.25}
LEARNED = {
    "sampling/sampling_logp_difference/mean": 0.02,
    "sampling/importance_sampling_ratio/max": 1.1,
}


def said(caplog: pytest.LogCaptureFixture, *steps: dict[str, Any], **settings: Any) -> list[str]:
    """What is logged over steps; each may change what was played, learned, or came of it."""
    caplog.set_level(logging.INFO)
    verdicts = Verdicts(GRPOConfig(**settings))
    for number, step in enumerate(steps, start=1):
        numbers = StepNumbers(
            loss=step.get("loss", 0.1), grad_norm=step.get("grad_norm", 0.5), learning_rate=1e-6
        )
        learned = step.get("learned", LEARNED)
        verdicts.judge(PLAYED | step.get("played", {}), learned, numbers, number)
    return [record.getMessage() for record in caplog.records]


def test_of_a_usual_step_there_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, {}, {}) == []


@pytest.mark.report("P061")
def test_a_loss_of_zero_that_is_right_is_called_so(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = said(caplog, {}, {"loss": -2e-8}, {"loss": 0.0})
    assert line.startswith("Step 2: a loss of -2e-08 is right")
    assert "norm is 0.5" in line
    assert caplog.records[0].levelno == logging.INFO


@pytest.mark.report("P054", "P061")
def test_rewards_that_stay_equal_are_told(caplog: pytest.LogCaptureFixture) -> None:
    flat = {"played": {"frac_reward_zero_std": 1.0}, "learned": {}, "loss": 0.0, "grad_norm": 0.0}
    assert said(caplog, *[flat] * (PATIENCE - 1), {}, *[flat] * (PATIENCE - 1)) == []
    (line,) = said(caplog, {}, *[flat] * (PATIENCE + 2))
    assert line.startswith("Step 4: for 3 generations in a row all rewards of each group were eq")
    assert "mean 0.25" in line


@pytest.mark.parametrize(
    ("ratio", "why"),
    [(0.0, "the importance correction dropped every row"), (0.5, "Every token is clipped")],
)
@pytest.mark.report("P061")
def test_a_gradient_of_zero_is_told(
    caplog: pytest.LogCaptureFixture, ratio: float, why: str
) -> None:
    learned = LEARNED | {"sampling/importance_sampling_ratio/max": ratio}
    (line,) = said(caplog, {"learned": learned, "grad_norm": 0.0})
    assert "nothing is learned although rewards differ" in line
    assert why in line


@pytest.mark.parametrize(
    ("settings", "is_told"), [({"temperature": 0.6}, True), ({"top_p": 0.9}, False)]
)
@pytest.mark.report("P051")
def test_logprobs_of_another_distribution_are_told_at_the_start(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], is_told: bool
) -> None:
    far = {"learned": LEARNED | {"sampling/sampling_logp_difference/mean": 0.4}}
    assert said(caplog, {}, far, **settings) == []  # later, weights have changed
    lines = said(caplog, far, far, **settings)
    assert len(lines) == is_told
    assert all("by 0.4 a token (mean)" in line for line in lines)
    assert all("temperature=0.6" in line for line in lines)
