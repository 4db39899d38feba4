"""The reference follows the policy by exactly the arithmetic that its settings name."""

import pytest
import torch
from torch import nn

from corral import GRPOConfig, UsageError
from corral.training.reference import check_reference, reference_of


def policy(*, value: float = 1.0) -> nn.Module:
    """A trained weight of 1, and a frozen one of 1/3, which no float has exactly."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        model[0].weight.fill_(value)
        model[1].weight.fill_(1 / 3)
    model[1].requires_grad_(False)
    return model


@pytest.mark.contract(40)
def test_a_move_mixes_the_policy_in_by_its_share() -> None:
    model = policy(value=0.0)
    reference = reference_of(model, GRPOConfig(beta=0.1), has_adapter=False)
    assert reference is not None
    frozen = reference.model[1].weight.clone()
    with torch.no_grad():
        model[0].weight.fill_(10.0)
    values: list[float] = []
    for _ in range(3):
        reference.move(model, 0.6)
        values.append(reference.model[0].weight.item())
    # 0.6·10 + 0.4·0, then 0.6·10 + 0.4·6, then 0.6·10 + 0.4·8.4
    assert values == pytest.approx([6.0, 8.4, 9.36], rel=1e-6)
    assert torch.equal(reference.model[1].weight, frozen)
    assert model[0].weight.item() == 10.0
    reference.move(model, 1.0)
    assert reference.model[0].weight.item() == 10.0
    assert list(reference.moving(model)) == ["0.weight"]


@pytest.mark.contract(3, 40)
def test_a_reference_that_cannot_move_is_refused() -> None:
    check_reference(GRPOConfig(beta=0.0), "model", None)
    check_reference(GRPOConfig(beta=0.1, sync_ref_model=True), "model", None)
    with pytest.raises(UsageError, match=r"sync_ref_model=True with beta=0.0: .* Set beta"):
        check_reference(GRPOConfig(sync_ref_model=True), "model", None)
    with pytest.raises(NotImplementedError, match="sync_ref_model=True with an adapter"):
        check_reference(GRPOConfig(beta=0.1, sync_ref_model=True), "model", object())


def test_without_a_weight_there_is_no_reference() -> None:
    assert reference_of(policy(), GRPOConfig(), has_adapter=False) is None
