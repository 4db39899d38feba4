"""Losses against the reference's values; see the golden file for how those were made."""

import json
from pathlib import Path

import pytest
import torch

from corral.algorithms import (
    ImportanceRatio,
    LossOptions,
    TokenBatch,
    Totals,
    entropy_threshold,
    finish_metrics,
    policy_loss,
)

REFERENCE_LENGTH = 8


def _golden(folder: Path) -> dict:
    return json.loads((folder / "golden" / "losses.json").read_text())


def _golden_batch(inputs: dict[str, torch.Tensor]) -> TokenBatch:
    rows, width = inputs["per_token_logps"].shape
    return TokenBatch(
        logprobs=inputs["per_token_logps"].flatten().clone().requires_grad_(),
        mask=(inputs["completion_mask"] * inputs["tool_mask"]).flatten().bool(),
        row=torch.arange(rows).repeat_interleave(width),
        advantages=inputs["advantages"],
        old_logprobs=inputs["old_per_token_logps"].flatten(),
        sampling_logprobs=inputs["sampling_per_token_logps"].flatten(),
        ref_logprobs=inputs["ref_per_token_logps"].flatten(),
        entropies=inputs["entropies"].flatten(),
        row_count=rows,
    )


def _golden_importance(inputs: dict[str, torch.Tensor], loss: str) -> ImportanceRatio:
    ratio = inputs["importance_sampling_ratio"].clone()
    if loss == "vespo":
        # The reference sums a row's log ratios over all places, trusting that they are 1 outside
        # the mask; its test input is not. Here places outside never count, so the same product
        # is put inside.
        outside = inputs["completion_mask"] * inputs["tool_mask"] == 0
        ratio[:, 0] *= torch.where(outside, ratio, 1.0).prod(dim=1)
    return ImportanceRatio(values=ratio.flatten())


@pytest.mark.contract(36)
def test_every_golden_case_has_the_reference_loss_gradient_and_metrics(test_data):
    golden = _golden(test_data)
    inputs = {k: torch.tensor(v, dtype=torch.float64) for k, v in golden["inputs"].items()}
    assert len(golden["cases"]) >= 60
    for case in golden["cases"]:
        options = dict(case["options"])
        uses_importance = options.pop("use_is", False)
        batch = _golden_batch(inputs)
        threshold = entropy_threshold(
            batch.entropies, batch.mask, options.get("top_entropy_quantile", 1.0)
        )
        result = policy_loss(
            case["loss_type"],
            batch,
            LossOptions(max_completion_length=REFERENCE_LENGTH, **options),
            Totals.of_batch(batch),
            entropy_threshold=threshold,
            importance_ratio=_golden_importance(inputs, case["loss_type"])
            if uses_importance
            else None,
        )
        result.loss.backward()
        name = f"{case['loss_type']} {case['options']}"
        assert result.loss.item() == pytest.approx(case["loss"], rel=1e-9), name
        assert finish_metrics(result.metrics) == pytest.approx(case["metrics"], rel=1e-9), name
        expected = torch.tensor(case["grad"], dtype=torch.float64).flatten()
        torch.testing.assert_close(
            batch.logprobs.grad, expected, rtol=1e-9, atol=1e-15, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.fixture
def contract_batch(batch_of):
    return batch_of(
        [[-0.8, -2.6, -0.5], [-0.5, -0.9, -0.4]],
        mask=[[1, 0, 1], [1, 1, 1]],
        old_logprobs=[[-1, -2, -0.5], [-0.7, -0.3, -0.5]],
        ref_logprobs=[[-1.2, -2, -0.5], [-0.7, -0.3, -0.9]],
        entropies=[[0.5, 0.1, 0.2], [1, 0.3, 0.7]],
        advantages=[1.0, -1.0],
        # Like the reference run: a drift of exactly the threshold 0.1 is decided by rounding.
        dtype=torch.float32,
    )


CONTRACT_VALUES = [
    ("grpo", {}, -0.028904),
    ("bnpo", {}, 0.185315),
    ("dr_grpo", {}, 0.057911),
    ("dapo", {}, 0.185315),
    ("sapo", {}, -0.122321),
    ("vespo", {}, -0.046156),
    ("luspo", {}, 0.463287),
    ("cispo", {"epsilon_high": 0.2}, -0.020000),
    ("cispo", {"epsilon_high": 2.0}, -0.013916),
    ("grpo", {"importance_sampling_level": "sequence"}, -0.100167),
    ("luspo", {"importance_sampling_level": "sequence"}, 0.252085),
    ("grpo", {"epsilon_high": 0.28}, -0.034255),
    ("grpo", {"delta": 1.1}, -0.007472),
    ("grpo", {"beta": 0.1}, -0.022382),
    ("grpo", {"beta": 0.1, "use_bias_correction_kl": False}, -0.021357),
    ("grpo", {"top_entropy_quantile": 0.4}, 0.387762),
    ("grpo", {"off_policy_mask_threshold": 0.03}, -0.550000),
    ("grpo", {"off_policy_mask_threshold": 0.1}, -0.028904),
    ("grpo", {"entropy_coef": 0.01}, -0.034304),
]


@pytest.mark.parametrize(("loss", "options", "expected"), CONTRACT_VALUES)
@pytest.mark.contract(36)
def test_confirmed_values_of_the_contract(contract_batch, loss, options, expected):
    options = LossOptions(max_completion_length=REFERENCE_LENGTH, **options)
    threshold = entropy_threshold(
        contract_batch.entropies, contract_batch.mask, options.top_entropy_quantile
    )
    result = policy_loss(
        loss, contract_batch, options, Totals.of_batch(contract_batch), entropy_threshold=threshold
    )
    assert result.loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.contract(36)
def test_confirmed_value_with_one_importance_ratio_a_row(contract_batch):
    ratio = ImportanceRatio(values=torch.tensor([2.0, 0.0]), is_per_row=True)
    result = policy_loss(
        "dapo",
        contract_batch,
        LossOptions(),
        Totals.of_batch(contract_batch),
        importance_ratio=ratio,
    )
    assert result.loss.item() == pytest.approx(-0.88, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "totals", "expected"),
    [
        # The reference's dapo with accumulation 2 of 4 slices expects N · 2/4 tokens in a step.
        ("dapo", Totals(tokens=2.5, rows=2), 0.370629),
        # Its grpo with accumulation 2: this micro-batch is half of the step's rows.
        ("grpo", Totals(tokens=10, rows=4), -0.014452),
    ],
)
@pytest.mark.contract(36, 38)
def test_confirmed_values_with_accumulation(contract_batch, loss, totals, expected):
    result = policy_loss(loss, contract_batch, LossOptions(), totals)
    assert result.loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.contract(36)
def test_confirmed_metrics_of_the_contract(contract_batch):
    totals = Totals.of_batch(contract_batch)
    options = LossOptions(beta=0.1, entropy_coef=0.01)
    metrics = finish_metrics(policy_loss("grpo", contract_batch, options, totals).metrics)
    assert metrics == pytest.approx(
        {
            "kl": 0.069681,
            "entropy": 0.54,
            "clip_ratio/low_mean": 0.2,
            "clip_ratio/high_mean": 0.2,
            "clip_ratio/region_mean": 0.4,
            "clip_ratio/low_min": 0.0,
            "clip_ratio/high_max": 0.5,
            "policy_loss": -0.022382,
        },
        abs=1e-6,
    )
    options = LossOptions(beta=0.1, use_bias_correction_kl=False)
    metrics = finish_metrics(policy_loss("grpo", contract_batch, options, totals).metrics)
    assert metrics["kl"] == pytest.approx(0.083540, abs=1e-6)
