"""The reference model moves as that of TRL 1.16 does."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from corral import GRPOConfig
from corral.training.reference import reference_of

pytest.importorskip("trl", reason="TRL is not installed")
from trl.trainer.callbacks import SyncRefModelCallback


@pytest.mark.contract(40)
def test_a_move_is_to_the_last_bit_that_of_trl() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 30), nn.Linear(30, 20))
    reference = reference_of(model, GRPOConfig(beta=0.1), has_adapter=False)
    assert reference is not None
    theirs: Any = copy.deepcopy(reference.model)
    for share in (0.6, 0.1, 0.999):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        reference.move(model, share)
        SyncRefModelCallback._sync_target_model(model, theirs, share)
    for ours, other in zip(reference.model.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(ours, other)
