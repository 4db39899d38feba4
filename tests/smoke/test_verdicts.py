"""A run says whether what it samples and what it learns fit together."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral import GRPOConfig, GRPOTrainer
from corral.engines.torch_engine import TorchEngine
from corral.records import Sampled, SamplingParams
from corral.worlds.guess_number import GuessNumber
from support.tiny_models import tiny_model, tiny_tokenizer


class ReportsWrongly(TorchEngine):
    """Reports other logprobs than those it sampled with."""

    report: Callable[[float], float]

    async def sample(self, prompt_ids: Any, params: SamplingParams, *, key: str) -> Sampled:
        sampled = await super().sample(prompt_ids, params, key=key)
        return replace(sampled, logprobs=tuple(map(self.report, sampled.logprobs)))


def trained(folder: Path, report: Callable[[float], float], **settings: Any) -> dict[str, float]:
    """The numbers of the first step."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    engine = ReportsWrongly(model)
    engine.report = report
    sizes: dict[str, Any] = {"max_steps": 1, "per_device_train_batch_size": 4}
    sizes |= {"num_generations": 4, "max_completion_length": 12, "temperature": 0.6}
    trainer = GRPOTrainer(
        model,
        lambda completions, **kwargs: [float(number) for number in range(len(completions))],
        GRPOConfig(output_dir=str(folder), **(sizes | settings)),
        [{"prompt": "Find the number.", "secret": 7}],
        processing_class=tokenizer,
        environment_factory=GuessNumber,
        engine=engine,
    )
    trainer.train()
    return trainer.state.log_history[0]


def test_an_engine_that_reports_what_it_sampled_with_is_trusted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = trained(tmp_path, lambda logprob: logprob)
    assert log["sampling/sampling_logp_difference/max"] < 1e-5
    assert log["advantages/abs_mean"] == pytest.approx(0.7745, abs=1e-3)  # of rewards 0, 1, 2, 3
    assert "before any update" not in caplog.text


@pytest.mark.report("P051")
def test_raw_logprobs_of_a_tempered_sample_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained(tmp_path, lambda logprob: 0.6 * logprob)
    assert "before any update, the logprobs of what was sampled differ" in caplog.text


@pytest.mark.report("P061")
def test_a_correction_that_drops_everything_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = trained(tmp_path, lambda logprob: logprob - 1)
    assert log["grad_norm"] == 0
    assert "the importance correction dropped every row" in caplog.text


@pytest.mark.report("P052")
def test_a_logprob_that_is_no_number_costs_its_correction_only(tmp_path: Path) -> None:
    log = trained(tmp_path, lambda logprob: math.nan if logprob < -2 else logprob)
    assert log["sampling/missing_logprobs"] > 0
    assert log["grad_norm"] > 0
    assert all(math.isfinite(value) for value in log.values())
