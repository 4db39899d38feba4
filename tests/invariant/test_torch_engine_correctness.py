"""The engine samples what the model itself would: greedy ids, logprobs, any architecture."""

import functools
import math

import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM

from corral.engines.torch_engine import TorchEngine
from corral.errors import UsageError
from support.engine_models import (
    MODELS,
    build_model,
    random_prompts,
    reference_logprobs,
    sample_together,
    sampling,
)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
async def test_greedy_ids_equal_those_of_generate(name: str, attention: str) -> None:
    model = build_model(name, attention)
    prompts = random_prompts((5, 30, 17, 40, 3))
    engine = TorchEngine(model, max_batch=3)
    sampled = await sample_together(engine, prompts, [sampling(temperature=0)] * 5)
    for ids, one in zip(prompts, sampled, strict=True):
        expected = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
        )[0, len(ids) :]
        assert list(one.ids) == expected.tolist()
        reference = reference_logprobs(model, ids, one.ids)
        torch.testing.assert_close(torch.tensor(one.logprobs), reference, atol=3e-5, rtol=0)


@pytest.mark.parametrize("name", ["qwen3", "gpt2"])
@pytest.mark.report("P051")
async def test_logprobs_are_those_of_a_plain_pass_at_the_sampling_temperature(name: str) -> None:
    model = build_model(name)
    prompts = random_prompts((5, 21, 9))
    temperatures = (1.0, 0.7, 1.6)
    how = [sampling(temperature=t, seed=i) for i, t in enumerate(temperatures)]
    sampled = await sample_together(TorchEngine(model), prompts, how)
    for ids, one, temperature in zip(prompts, sampled, temperatures, strict=True):
        reference = reference_logprobs(model, ids, one.ids, temperature)
        torch.testing.assert_close(torch.tensor(one.logprobs), reference, atol=3e-5, rtol=0)


async def test_samples_do_not_depend_on_the_company() -> None:
    model = build_model()
    prompts = random_prompts((12, 7, 25, 31, 4, 18))
    how = [sampling(seed=100 + i, max_new_tokens=3 + 4 * i) for i in range(len(prompts))]
    together = await sample_together(TorchEngine(model, max_batch=4), prompts, how)
    for i, one in enumerate(together):
        alone = (await sample_together(TorchEngine(model), [prompts[i]], [how[i]]))[0]
        assert alone.ids == one.ids
        assert math.isclose(sum(alone.logprobs), sum(one.logprobs), abs_tol=1e-4)


async def test_a_prompt_longer_than_a_chunk_is_prefilled_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build_model()
    prompts = random_prompts((40, 33, 5))
    expected = await sample_together(TorchEngine(model), prompts, [sampling()] * 3)
    monkeypatch.setattr("corral.engines.torch_engine.pieces._CHUNK_TOKENS", 7)
    in_pieces = await sample_together(TorchEngine(model), prompts, [sampling()] * 3)
    assert [one.ids for one in in_pieces] == [one.ids for one in expected]


@pytest.mark.parametrize("logit", [-math.inf, torch.finfo(torch.float32).min])
@pytest.mark.report("P038")
async def test_a_token_that_the_model_rules_out_is_never_drawn(
    logit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build_model()
    right = model.forward

    @functools.wraps(right)
    def ruling_out(*args, **kwargs):
        output = right(*args, **kwargs)
        output.logits[..., 20:] = logit
        return output

    monkeypatch.setattr(model, "forward", ruling_out)
    prompts = random_prompts((5, 21))
    how = [sampling(temperature=t, seed=i) for i, t in enumerate((0.6, 1.0))]
    with torch.no_grad():
        sampled = await sample_together(TorchEngine(model), prompts, how)
        for ids, one, temperature in zip(prompts, sampled, (0.6, 1.0), strict=True):
            assert max(one.ids) < 20
            reference = reference_logprobs(model, ids, one.ids, temperature)
            torch.testing.assert_close(torch.tensor(one.logprobs), reference, atol=3e-5, rtol=0)


def test_a_model_with_recurrent_layers_is_refused_by_name() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1))
    with pytest.raises(UsageError, match=r"MambaForCausalLM.*linear_attention"):
        TorchEngine(model, max_context=64)


def test_a_model_that_ignores_positions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model()
    right = model.forward

    def wrong(*args, position_ids=None, cache=None, logits_to_keep=0, **kwargs):
        if cache is not None:
            position_ids = torch.zeros_like(position_ids)
        return right(
            *args, position_ids=position_ids, cache=cache, logits_to_keep=logits_to_keep, **kwargs
        )

    monkeypatch.setattr(model, "forward", wrong)
    with pytest.raises(UsageError, match=r"LlamaForCausalLM does not give its own logits"):
        TorchEngine(model)
