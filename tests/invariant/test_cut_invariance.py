"""The gradient of a step does not depend on how its rows were cut into micro-batches."""

import random

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from corral.algorithms import (
    LOSSES,
    LossOptions,
    Totals,
    collate,
    combine_metrics,
    cut,
    entropy_threshold,
    episode_shares,
    finish_metrics,
    importance_ratio,
    policy_loss,
    token_logprobs,
)
from corral.records import Sample

VOCABULARY = 40
LENGTHS = [23, 4, 9, 16, 5, 12]
TOKEN_BUDGETS = [1, 40, 1000]
"""From one row each, through uneven cuts, to all in one."""


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=4,
    )
    return Qwen3ForCausalLM(config).double().train()


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    chance = random.Random(1)
    made = []
    for member, length in enumerate(LENGTHS):
        mask = tuple(int(place >= 2 and chance.random() < 0.7) for place in range(length))
        made.append(
            Sample(
                ids=tuple(chance.randrange(VOCABULARY) for _ in range(length)),
                loss_mask=mask,
                logprobs=tuple(-3.7 + chance.uniform(-0.3, 0.3) if kept else 0.0 for kept in mask),
                advantage=chance.uniform(-1, 1),
                version=0,
                # Two rows of one episode: a history that was rewritten.
                episode=(0, min(member, len(LENGTHS) - 2)),
            )
        )
    return made


def _drift(micro, scored):
    """Old and reference logprobs: those of now, moved by something that only the token decides."""
    move = 0.3 * torch.sin(micro.targets.double() * 7.0)
    return scored.logprobs.detach() + move, scored.logprobs.detach() - 0.5 * move


def _step(model, samples, name, options, *, threshold, token_budget, packing):
    """Gradient, loss and metrics of one optimizer step."""
    model.zero_grad()
    shares = episode_shares(samples)
    totals = Totals.of_samples(samples)
    loss, parts = 0.0, []
    for indices in cut([len(s.ids) for s in samples], token_budget, packing=packing):
        micro = collate(samples, indices, packing=packing, pad_id=3, episode_shares=shares)
        scored = token_logprobs(model, micro, chunk_tokens=7, with_entropy=True)
        old, ref = _drift(micro, scored)
        batch = micro.token_batch(
            scored.logprobs, old_logprobs=old, ref_logprobs=ref, entropies=scored.entropies
        )
        result = policy_loss(
            name,
            batch,
            options,
            totals,
            entropy_threshold=threshold,
            importance_ratio=importance_ratio(batch, "token_truncate"),
        )
        result.loss.backward()
        loss += result.loss.item()
        parts.append(result.metrics)
    gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    return gradient, loss, finish_metrics(combine_metrics(parts))


def _threshold(model, samples, quantile):
    micro = collate(samples, range(len(samples)), packing=False)
    with torch.no_grad():
        entropies = token_logprobs(model, micro, with_entropy=True).entropies
    return entropy_threshold(entropies, torch.ones_like(entropies), quantile)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.report("P029", "P048", "P063")
def test_gradient_loss_and_metrics_do_not_depend_on_the_cut(model, samples, name, level):
    options = LossOptions(
        beta=0.05,
        off_policy_mask_threshold=0.05,
        top_entropy_quantile=0.8,
        entropy_coef=0.01,
        importance_sampling_level=level,
    )
    threshold = _threshold(model, samples, options.top_entropy_quantile)

    def step(token_budget, *, packing):
        return _step(
            model,
            samples,
            name,
            options,
            threshold=threshold,
            token_budget=token_budget,
            packing=packing,
        )

    gradient, loss, metrics = step(10_000, packing=False)
    assert gradient.abs().max() > 1e-6
    for packing in (False, True):
        for token_budget in TOKEN_BUDGETS:
            other_gradient, other_loss, other_metrics = step(token_budget, packing=packing)
            torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-13)
            assert other_loss == pytest.approx(loss, rel=1e-9)
            assert other_metrics == pytest.approx(metrics, rel=1e-9)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    try:
        other_gradient, _, _ = step(40, packing=True)
        torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-13)
    finally:
        model.gradient_checkpointing_disable()


def test_the_cuts_compared_are_different_ones():
    cuts = {
        str(cut(LENGTHS, token_budget, packing=packing))
        for token_budget in TOKEN_BUDGETS
        for packing in (False, True)
    }
    # With one row each and with all in one, packing changes the layout but not the cut.
    assert len(cuts) == 4
