import logging

import pytest
import torch
from torch import nn

from corral import UsageError
from corral.training.weights import check_weights


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(value: float) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    check_weights(model)
    with torch.no_grad():
        model[1].bias[1] = value
    with pytest.raises(UsageError, match=r"weight 1\.bias has values that are NaN or infinite"):
        check_weights(model)


def test_large_weights_are_numbers() -> None:
    model = nn.Linear(2, 2, bias=False)
    nn.init.constant_(model.weight, torch.finfo(torch.float32).max)
    check_weights(model)


@pytest.mark.report("P057")
def test_trained_weights_in_sixteen_bits_are_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        check_weights(nn.Linear(2, 2).bfloat16().requires_grad_(False))
        check_weights(nn.Linear(2, 2))
        assert not caplog.records
        check_weights(nn.Linear(2, 2).bfloat16())
    assert "The trained weights are bfloat16: small updates are lost" in caplog.text
