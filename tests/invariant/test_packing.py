"""Packed weights: the model's own results, always of its present weights, and no trace left."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from corral.engines.torch_engine import TorchEngine
from corral.engines.torch_engine.packing import PackedLinears
from support.engine_models import build_model, random_prompts, reference_logprobs, sampling

IDS = torch.tensor(random_prompts([12, 12]))


def _logits(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits


def test_only_models_that_overflow_the_caches_are_packed():
    assert not PackedLinears(build_model("llama")).rounds_alike
    assert PackedLinears(build_model("wide llama")).rounds_alike


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_are_the_models(dtype: torch.dtype):
    if dtype is torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN does not multiply bfloat16 on this processor, so nothing is packed")
    model = build_model("wide llama").to(dtype)
    plain = _logits(model)
    packed = PackedLinears(model)
    with packed.in_use():
        assert "forward" in model.lm_head.__dict__
        own = _logits(model)
    assert "forward" not in model.lm_head.__dict__
    tolerance = {torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    assert (own - plain).abs().max() <= tolerance * plain.std()


def test_rows_round_alike_in_any_number():
    model = build_model("wide llama")
    layer = model.model.layers[0].mlp.down_proj
    rows = torch.randn(300, layer.in_features)
    with PackedLinears(model).in_use(), torch.no_grad():
        together = layer(rows)
        for count in (2, 3, 5, 8, 16, 17, 64, 200):
            assert torch.equal(layer(rows[:count]), together[:count])
            assert torch.equal(layer(rows[-count:]), together[-count:])


def test_an_update_in_place_is_seen_without_being_told():
    model = build_model("wide llama")
    packed = PackedLinears(model)
    with packed.in_use():
        _logits(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(input_ids=IDS, labels=IDS).loss.backward()
    optimizer.step()
    plain = _logits(model)
    with packed.in_use():
        torch.testing.assert_close(_logits(model), plain, rtol=1e-4, atol=1e-4)


async def test_an_update_behind_autograds_back_is_seen_when_told():
    model = build_model("wide llama")
    engine = TorchEngine(model)
    prompt = IDS[0].tolist()
    await engine.sample(prompt, sampling(), key="before")
    model.lm_head.weight.data.mul_(0.5)
    engine.weights_changed(version=1)
    sampled = await engine.sample(prompt, sampling(), key="after")
    expected = reference_logprobs(model, prompt, sampled.ids)
    assert sampled.logprobs == pytest.approx(expected.tolist(), abs=1e-3)
    await engine.aclose()


def test_adapters_are_multiplied_as_well():
    model = get_peft_model(build_model("wide llama"), LoraConfig(init_lora_weights=False))
    plain = _logits(model)
    with PackedLinears(model).in_use():
        torch.testing.assert_close(_logits(model), plain, rtol=1e-4, atol=1e-4)


def test_a_failing_pass_leaves_no_trace():
    model = build_model("wide llama")
    packed = PackedLinears(model)
    with pytest.raises(IndexError), packed.in_use():
        model(input_ids=IDS + 10**6)
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_a_replaced_forward_is_left_alone():
    model = build_model("wide llama")
    model.lm_head.forward = lambda rows: nn.functional.linear(rows, model.lm_head.weight) * 2
    plain = _logits(model)
    packed = PackedLinears(model)
    assert not packed.rounds_alike
    with packed.in_use():
        torch.testing.assert_close(_logits(model), plain, rtol=1e-4, atol=1e-4)
