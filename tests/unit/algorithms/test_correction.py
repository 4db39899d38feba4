import math

import pytest
import torch

from corral.algorithms import (
    LossOptions,
    Totals,
    combine_metrics,
    correction_metrics,
    finish_metrics,
    importance_ratio,
    policy_loss,
)
from corral.algorithms.correction import ROUNDING
from corral.errors import UsageError

LOG_2 = math.log(2.0)


@pytest.fixture
def drifted(batch_of):
    """Token ratios 2, 4, (masked) and 1/2, 1, 1/4."""
    old = [[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]
    gaps = [[LOG_2, 2 * LOG_2, 9.0], [-LOG_2, 0.0, -2 * LOG_2]]
    sampling = [
        [value - gap for value, gap in zip(*rows, strict=True)]
        for rows in zip(old, gaps, strict=True)
    ]
    return batch_of(
        old,
        old_logprobs=old,
        sampling_logprobs=sampling,
        mask=[[1, 1, 0], [1, 1, 1]],
        advantages=[1.0, -1.0],
    )


@pytest.mark.parametrize(
    ("mode", "bounds", "expected"),
    [
        ("token_truncate", {"clip_max": 3.0}, [2, 3, 1, 0.5, 1, 0.25]),
        ("token_truncate", {"clip_max": None, "clip_min": 0.5}, [2, 4, 1, 0.5, 1, 0.5]),
        ("token_mask", {"clip_max": 3.0}, [2, 0, 1, 0.5, 1, 0.25]),
        ("token_mask", {"clip_max": 3.0, "clip_min": 0.3}, [2, 0, 1, 0.5, 1, 0]),
        ("sequence_truncate", {"clip_max": 3.0}, [3, 0.125]),
        ("sequence_mask", {"clip_max": 3.0}, [0, 0.125]),
        ("sequence_mask", {"clip_max": 9.0, "clip_min": 0.2}, [8, 0]),
    ],
)
@pytest.mark.contract(37)
def test_modes_and_bounds(drifted, mode, bounds, expected):
    ratio = importance_ratio(drifted, mode, **bounds)
    assert ratio.values.tolist() == pytest.approx(expected)
    assert ratio.is_per_row == mode.startswith("sequence")


@pytest.mark.parametrize("mode", ["token_mask", "sequence_truncate"])
@pytest.mark.contract(37)
@pytest.mark.report("P052")
def test_a_missing_logprob_counts_as_ratio_one_and_is_counted(batch_of, mode):
    batch = batch_of(
        [[-1.0, -1.0]],
        old_logprobs=[[-1.0, -1.0]],
        sampling_logprobs=[[math.nan, -1.0 - LOG_2]],
        advantages=[1.0],
    )
    ratio = importance_ratio(batch, mode)
    assert ratio.per_token(batch.row).prod().item() == pytest.approx(
        2.0 if "token" in mode else 4.0
    )
    result = policy_loss(
        "dapo", batch, LossOptions(), Totals.of_batch(batch), importance_ratio=ratio
    )
    assert result.loss.isfinite()
    metrics = finish_metrics(correction_metrics(batch, ratio))
    assert metrics["sampling/missing_logprobs"] == 1.0


@pytest.mark.parametrize("mode", ["token_truncate", "sequence_truncate"])
def test_differences_of_rounding_count_as_none(batch_of, mode):
    off = ROUNDING / 2
    batch = batch_of(
        [[-1.0, -1.0, -1.0]],
        old_logprobs=[[-1.0, -1.0, -1.0]],
        sampling_logprobs=[[-1.0 + off, -1.0 - off, -1.0 - off]],
        advantages=[1.0],
    )
    assert set(importance_ratio(batch, mode).per_token(batch.row).tolist()) == {1.0}
    told = finish_metrics(correction_metrics(batch, None))
    assert told["sampling/sampling_logp_difference/max"] == pytest.approx(off, rel=1e-2)


def test_a_row_ratio_is_a_factor_of_each_of_its_tokens(drifted):
    ratio = importance_ratio(drifted, "sequence_truncate", clip_max=3.0)
    assert ratio.per_token(drifted.row).tolist() == pytest.approx([3] * 3 + [0.125] * 3)


def test_without_sampling_logprobs_there_is_no_correction(batch_of):
    batch = batch_of([[-1.0]], advantages=[1.0])
    assert importance_ratio(batch, "token_truncate") is None
    assert correction_metrics(batch, None) == {}


def test_metrics_describe_trained_tokens_only(drifted):
    ratio = importance_ratio(drifted, "token_truncate", clip_max=3.0)
    metrics = finish_metrics(correction_metrics(drifted, ratio))
    assert metrics == pytest.approx(
        {
            "sampling/sampling_logp_difference/mean": LOG_2 * 6 / 5,
            "sampling/sampling_logp_difference/max": 2 * LOG_2,
            "sampling/missing_logprobs": 0.0,
            "sampling/importance_sampling_ratio/min": 0.25,
            "sampling/importance_sampling_ratio/mean": 6.75 / 5,
            "sampling/importance_sampling_ratio/max": 3.0,
        }
    )


def test_extremes_of_nothing_are_left_out(drifted):
    empty = correction_metrics(
        type(drifted)(
            logprobs=torch.zeros(0),
            sampling_logprobs=torch.zeros(0),
            mask=torch.zeros(0, dtype=torch.bool),
            row=torch.zeros(0, dtype=torch.int64),
            advantages=torch.zeros(0),
            row_count=0,
        ),
        None,
    )
    assert "sampling/sampling_logp_difference/max" not in finish_metrics(empty)
    both = combine_metrics([empty, correction_metrics(drifted, None)])
    assert finish_metrics(both)["sampling/sampling_logp_difference/max"] == pytest.approx(2 * LOG_2)


@pytest.mark.parametrize(
    ("mode", "bounds", "message"),
    [
        ("token_mask", {"clip_min": 3.0, "clip_max": 3.0}, r"3\.0 is not below"),
        ("sequence_truncate", {"clip_max": None}, "give clip_max"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(drifted, mode, bounds, message):
    with pytest.raises(UsageError, match=message):
        importance_ratio(drifted, mode, **bounds)
