import logging
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from corral.algorithms import collate, keeps_packed_rows_apart, logprobs, token_logprobs
from corral.algorithms.output_head import find_output_head
from corral.errors import UsageError
from support.random_samples import random_samples

VOCABULARY = 48
LENGTHS = [9, 4, 13, 7]
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "pad_token_id": 0,
}


class DoublingLlama(LlamaForCausalLM):
    """A model that changes its logits in a way no configuration tells."""

    def forward(self, *args, **kwargs):
        """Logits twice as large."""
        output = super().forward(*args, **kwargs)
        output.logits = output.logits * 2.0
        return output


class ExcludingLlama(LlamaForCausalLM):
    """A model that rules some tokens out."""

    ALLOWED = 40

    def forward(self, *args, **kwargs):
        """Logits of -inf behind the tokens that are allowed."""
        output = super().forward(*args, **kwargs)
        excluded = torch.arange(output.logits.shape[-1]) >= self.ALLOWED
        output.logits = output.logits.masked_fill(excluded, -torch.inf)
        return output


MODELS: dict[str, Callable[[], nn.Module]] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, tie_word_embeddings=True)),
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SIZES, final_logit_softcapping=0.2)),
    "cohere": lambda: CohereForCausalLM(CohereConfig(**SIZES, logit_scale=0.5)),
    "granite": lambda: GraniteForCausalLM(GraniteConfig(**SIZES, logits_scaling=4.0)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    ),
    "doubling": lambda: DoublingLlama(LlamaConfig(**SIZES)),
}


COMPUTES_PARTLY_IN_FLOAT32 = ("gemma2", "cohere")
"""Families whose norms or rotations round to float32 even in a float64 model."""


def _model(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name]().double().eval()


def _dense(model, sample, *, temperature=1.0):
    """Logprobs and entropies of a sample's trained tokens, from logits of the whole row."""
    logits = model(input_ids=torch.tensor([sample.ids])).logits[0, :-1] / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    trained = torch.tensor(sample.loss_mask[1:]).bool()
    chosen = logprobs.gather(-1, torch.tensor(sample.ids[1:])[:, None]).squeeze(-1)
    return chosen[trained], -(logprobs.exp() * logprobs).sum(-1)[trained]


def _gradients(model, value):
    model.zero_grad()
    value.backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.parametrize("kept_bytes", [0, 2**26], ids=["computed again", "kept"])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.report("P029")
def test_logprobs_entropies_and_gradients_equal_those_of_dense_logits(
    caplog, monkeypatch, name, packing, kept_bytes
):
    monkeypatch.setattr(logprobs, "_KEPT_BYTES", kept_bytes)
    caplog.set_level(logging.ERROR)
    model, samples, order = _model(name), random_samples(LENGTHS), [2, 0, 3, 1]
    micro = collate(samples, order, packing=packing, pad_id=5)
    scored = token_logprobs(model, micro, temperature=0.7, chunk_tokens=4, with_entropy=True)
    dense = [_dense(model, samples[index], temperature=0.7) for index in order]
    expected = [torch.cat(parts) for parts in zip(*dense, strict=True)]
    is_coarse = name in COMPUTES_PARTLY_IN_FLOAT32
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if is_coarse else {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(scored.logprobs, expected[0], **tolerance)
    torch.testing.assert_close(scored.entropies, expected[1], **tolerance)
    weights = torch.linspace(-1, 2, len(expected[0]), dtype=torch.float64)
    got = _gradients(model, (weights * scored.logprobs + scored.entropies).sum())
    wanted = _gradients(model, (weights * expected[0] + expected[1]).sum())
    assert got.keys() == wanted.keys()
    torch.testing.assert_close(got, wanted, **tolerance)


@pytest.mark.parametrize("kept_bytes", [0, 2**26], ids=["computed again", "kept"])
@pytest.mark.report("P038")
def test_a_token_that_the_model_rules_out_spoils_nothing(monkeypatch, kept_bytes):
    monkeypatch.setattr(logprobs, "_KEPT_BYTES", kept_bytes)
    torch.manual_seed(0)
    model = ExcludingLlama(LlamaConfig(**SIZES)).double().eval()
    (sample,) = random_samples([9], vocabulary=model.ALLOWED)
    micro = collate([sample], [0], packing=False)
    scored = token_logprobs(model, micro, temperature=0.6, with_entropy=True)
    logits = model(input_ids=torch.tensor([sample.ids])).logits[0, :-1, : model.ALLOWED] / 0.6
    trained = torch.tensor(sample.loss_mask[1:]).bool()
    chosen = logits.log_softmax(-1).gather(-1, torch.tensor(sample.ids[1:])[:, None]).squeeze(-1)
    entropies = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(scored.logprobs, chosen[trained])
    torch.testing.assert_close(scored.entropies, entropies[trained])
    got = _gradients(model, (scored.logprobs + scored.entropies).sum())
    torch.testing.assert_close(got, _gradients(model, (chosen + entropies)[trained].sum()))


@pytest.mark.report("P147")
@pytest.mark.parametrize("name", [name for name in MODELS if name != "doubling"])
def test_known_families_get_logits_in_chunks(name):
    head = find_output_head(_model(name), torch.tensor([[1, 2, 3, 4, 5]]))
    assert head is not None


def test_a_model_that_changes_its_logits_is_computed_whole_and_says_so(caplog):
    assert find_output_head(_model("doubling"), torch.tensor([[1, 2, 3]])) is None
    assert "DoublingLlama changes its logits" in caplog.text


class _WidestLogits(TorchDispatchMode):
    """Remembers the most rows of any tensor that is as wide as the vocabulary."""

    def __init__(self, ignore_rows: int):
        super().__init__()
        self.rows = 0
        self.ignore_rows = ignore_rows

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.dim() and value.shape[-1] == VOCABULARY:
                rows = value.numel() // VOCABULARY
                self.rows = max(self.rows, rows if rows != self.ignore_rows else 0)
        return result


@pytest.mark.report("P147")
@pytest.mark.parametrize("packing", [False, True])
def test_logits_are_never_wider_than_a_chunk(packing):
    model, samples = _model("llama"), random_samples([19, 17, 11])
    micro = collate(samples, [0, 1, 2], packing=packing)
    assert len(micro.targets) > 20
    find_output_head(model, micro.input_ids)
    # The head's transposed weight is as wide, with a row for each hidden unit.
    with _WidestLogits(ignore_rows=SIZES["hidden_size"]) as widest:
        token_logprobs(model, micro, chunk_tokens=5, with_entropy=True).logprobs.sum().backward()
    assert widest.rows == 5


@pytest.mark.parametrize(("kept_bytes", "passes"), [(0, 2), (2**26, 1)])
def test_only_large_logits_are_computed_again(monkeypatch, kept_bytes, passes):
    monkeypatch.setattr(logprobs, "_KEPT_BYTES", kept_bytes)
    model, samples = _model("llama"), random_samples([9, 7])
    micro = collate(samples, [0, 1], packing=False)
    find_output_head(model, micro.input_ids)
    calls: list[int] = []
    model.lm_head.register_forward_hook(lambda *_: calls.append(1))
    token_logprobs(model, micro).logprobs.sum().backward()
    assert len(calls) == passes


def test_low_precision_logits_are_scored_in_float32():
    model = _model("llama").to(torch.bfloat16)
    micro = collate(random_samples(LENGTHS), [0, 1, 2, 3], packing=False)
    scored = token_logprobs(model, micro, with_entropy=True)
    assert scored.logprobs.dtype is torch.float32
    assert scored.entropies.dtype is torch.float32


@pytest.mark.report("P042")
def test_padding_content_changes_nothing():
    model, samples = _model("qwen3"), random_samples(LENGTHS)
    results = []
    for pad_id in (0, 31):
        micro = collate(samples, [0, 1, 2, 3], packing=False, pad_id=pad_id)
        scored = token_logprobs(model, micro)
        results.append((scored.logprobs, _gradients(model, scored.logprobs.sum())))
    assert torch.equal(results[0][0], results[1][0])
    for name, gradient in results[0][1].items():
        assert torch.equal(gradient, results[1][1][name]), name


@pytest.mark.contract(21)
@pytest.mark.report("P029")
def test_tool_tokens_are_read_but_not_trained():
    model, (sample,) = _model("llama"), random_samples([12])
    micro = collate([sample], [0], packing=True)
    embeddings = model.get_output_embeddings()
    seen = []
    handle = embeddings.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[0]))
    find_output_head(model, micro.input_ids)
    seen.clear()
    with torch.no_grad():
        token_logprobs(model, micro)
    handle.remove()
    assert seen == [sample.trained_tokens()]
    assert 0 < sample.trained_tokens() < len(sample.ids) - 2


@pytest.mark.report("P066")
def test_a_batch_without_trained_tokens_has_a_zero_gradient():
    model = _model("llama")
    (sample,) = random_samples([2])
    micro = collate([sample], [0], packing=False)
    scored = token_logprobs(model, micro, with_entropy=True)
    assert scored.logprobs.shape == (0,)
    gradients = _gradients(model, scored.logprobs.sum())
    assert set(gradients) == {name for name, _ in model.named_parameters()}
    assert not any(gradient.any() for gradient in gradients.values())


def test_the_proof_leaves_training_mode_and_random_numbers_alone():
    model = _model("llama").train()
    model.model.layers[0].eval()
    micro = collate(random_samples(LENGTHS), [0], packing=True)
    state = torch.get_rng_state()
    assert find_output_head(model, micro.input_ids) is not None
    assert model.training
    assert not model.model.layers[0].training
    assert torch.equal(torch.get_rng_state(), state)


def test_the_proof_within_autocast_does_not_cost_the_first_gradient():
    # Some releases of torch cache weights cast under no_grad, which have no way back to the
    # parameters.
    model = _model("llama").float()
    micro = collate(random_samples(LENGTHS), [0, 1], packing=True)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logprobs = token_logprobs(model, micro).logprobs
        return _gradients(model, logprobs.sum())

    first, second = step(), step()
    assert set(first) == {name for name, _ in model.named_parameters()}
    torch.testing.assert_close(first, second)


def test_without_gradients_nothing_is_kept():
    micro = collate(random_samples(LENGTHS), [0, 1], packing=True)
    with torch.no_grad():
        assert not token_logprobs(_model("llama"), micro).logprobs.requires_grad


@pytest.mark.parametrize("name", [name for name in MODELS if name != "gpt2"])
def test_models_with_attention_keep_packed_rows_apart(name):
    assert keeps_packed_rows_apart(_model(name))


def test_a_model_that_mixes_packed_rows_is_found_out():
    class Leaky(LlamaForCausalLM):
        def forward(self, *args, position_ids=None, **kwargs):
            return super().forward(*args, **kwargs)

    assert not keeps_packed_rows_apart(Leaky(LlamaConfig(**SIZES)).double())


@pytest.mark.parametrize("targets", [["q_proj", "v_proj"], ["q_proj", "lm_head"]])
def test_adapters_are_part_of_the_model(targets):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False)
    model = peft.get_peft_model(_model("llama"), config).double()
    samples = random_samples(LENGTHS)
    micro = collate(samples, [0, 1, 2, 3], packing=True)
    assert find_output_head(model, micro.input_ids) is not None
    scored = token_logprobs(model, micro, chunk_tokens=4)
    dense = torch.cat([_dense(model, sample)[0] for sample in samples])
    torch.testing.assert_close(scored.logprobs, dense, rtol=1e-9, atol=1e-12)
    got, wanted = (_gradients(model, value.sum()) for value in (scored.logprobs, dense))
    assert got
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-12)
    with torch.no_grad(), model.disable_adapter():
        plain = token_logprobs(model, micro).logprobs
    assert not torch.allclose(plain, scored.logprobs, atol=1e-3)


@pytest.mark.filterwarnings("ignore:Position ids are not supported")
def test_prompt_learning_uses_the_whole_model():
    peft = pytest.importorskip("peft")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(_model("llama"), config).double().eval()
    samples = random_samples(LENGTHS)
    micro = collate(samples, [0, 1], packing=False)
    expected = []
    for sample in samples[:2]:
        logits = model(input_ids=torch.tensor([sample.ids])).logits[0, 3:-1]
        trained = torch.tensor(sample.loss_mask[1:]).bool()
        chosen = torch.log_softmax(logits, -1).gather(-1, torch.tensor(sample.ids[1:])[:, None])
        expected.append(chosen.squeeze(-1)[trained])
    scored = token_logprobs(model, micro)
    torch.testing.assert_close(scored.logprobs, torch.cat(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"chunk_tokens": 0}])
def test_settings_without_meaning_are_refused(options):
    micro = collate(random_samples([4]), [0], packing=True)
    with pytest.raises(UsageError, match=r"temperature is 0\.0|chunk_tokens is 0"):
        token_logprobs(_model("llama"), micro, **options)
