"""Logprobs from a head in float32 are those of TRL 1.16 with ``cast_lm_head_to_fp32``."""

import copy
from typing import Any

import pytest
import torch

from corral.algorithms import collate, token_logprobs
from corral.records import Sample
from corral.training.precise_head import make_head_precise
from support.tiny_models import tiny_model, tiny_tokenizer

utils = pytest.importorskip("trl.trainer.utils", reason="TRL is not installed")

IDS = tuple(range(40, 72))
PROMPT = 6


def ours(model: Any) -> torch.Tensor:
    mask = [int(place >= PROMPT) for place in range(len(IDS))]
    sample = Sample(
        ids=IDS,
        loss_mask=tuple(mask),
        logprobs=(0.0,) * len(IDS),
        advantage=1.0,
        version=0,
        episode=(0, 0),
    )
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        return token_logprobs(model, collate([sample], [0], packing=False)).logprobs


def theirs(model: Any, *, is_precise: bool) -> torch.Tensor:
    model = copy.deepcopy(model)
    utils.add_fused_lm_head(model, cast_lm_head_to_fp32=is_precise)
    ids = torch.tensor([IDS])
    labels = ids.clone()
    labels[:, :PROMPT] = -100
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        given = {"attention_mask": torch.ones_like(ids), "labels": labels, "fused_lm_head": True}
        return model(input_ids=ids, **given).log_probs[0, PROMPT - 1 :]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_logprobs_of_a_precise_head_are_those_of_trl(family: str) -> None:
    model = tiny_model(tiny_tokenizer(), family=family, spread=0.5).eval()
    expected, coarse = (theirs(model, is_precise=precise) for precise in (True, False))
    plain = ours(model)
    make_head_precise(model)
    torch.testing.assert_close(ours(model), expected, rtol=1e-5, atol=1e-5)
    assert (expected - coarse).abs().max() > 1e-3
    assert (ours(model) - plain).abs().max() > 1e-3
