from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.algorithms import (
    LOSSES,
    ImportanceRatio,
    LossOptions,
    Totals,
    combine_metrics,
    entropy_threshold,
    episode_shares,
    finish_metrics,
    importance_ratio,
    policy_loss,
    trainable,
)
from corral.errors import UsageError
from support.random_samples import random_samples

ALL_LOSSES = sorted(LOSSES)
EVERYTHING = {
    "beta": 0.05,
    "off_policy_mask_threshold": 0.05,
    "top_entropy_quantile": 0.7,
    "entropy_coef": 0.01,
    "max_completion_length": 8,
}
TENSORS = ("logprobs", "old_logprobs", "sampling_logprobs", "ref_logprobs", "entropies")


def _part(batch, rows):
    """The tokens of some rows as a batch of their own, sharing the leaf tensors' gradients."""
    keep = (batch.row[:, None] == torch.tensor(rows)).any(dim=1)
    renumbered = torch.full((batch.row_count,), -1)
    renumbered[torch.tensor(rows)] = torch.arange(len(rows))
    return replace(
        batch,
        **{name: getattr(batch, name)[keep] for name in TENSORS},
        mask=batch.mask[keep],
        row=renumbered[batch.row[keep]],
        advantages=batch.advantages[torch.tensor(rows)],
        row_count=len(rows),
    )


def _spoiled(batch, junk):
    """The same batch with one more, masked, place per row that holds junk everywhere."""
    extra = torch.full((batch.row_count,), junk, dtype=torch.float64)

    def widen(values):
        return torch.cat([values.detach(), extra.to(values.dtype)]).requires_grad_()

    return replace(
        batch,
        **{name: widen(getattr(batch, name)) for name in TENSORS},
        mask=torch.cat([batch.mask, torch.zeros(batch.row_count, dtype=torch.bool)]),
        row=torch.cat([batch.row, torch.arange(batch.row_count)]),
    )


def _full_loss(name, batch, **options):
    options = LossOptions(**{**EVERYTHING, **options})
    threshold = entropy_threshold(batch.entropies, batch.mask, options.top_entropy_quantile)
    return policy_loss(
        name,
        batch,
        options,
        Totals.of_batch(batch, entropy_threshold=threshold),
        entropy_threshold=threshold,
        importance_ratio=importance_ratio(batch, "token_truncate", clip_max=1.1),
    )


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.report("P048", "P063")
def test_micro_batches_add_up_to_the_whole_step(random_batch, name, level):
    whole = random_batch([3, 1, 7, 2, 5])
    options = LossOptions(**EVERYTHING, importance_sampling_level=level)
    threshold = entropy_threshold(whole.entropies, whole.mask, options.top_entropy_quantile)
    totals = Totals.of_batch(whole, entropy_threshold=threshold)

    def evaluate(parts):
        whole.logprobs.grad = whole.entropies.grad = None
        results = [
            policy_loss(
                name,
                part,
                options,
                totals,
                entropy_threshold=threshold,
                importance_ratio=importance_ratio(part, "sequence_truncate"),
            )
            for part in parts
        ]
        for result in results:
            result.loss.backward(retain_graph=True)
        loss = sum(result.loss.item() for result in results)
        metrics = finish_metrics(combine_metrics(result.metrics for result in results))
        return loss, metrics, whole.logprobs.grad, whole.entropies.grad

    loss, metrics, gradient, entropy_gradient = evaluate([whole])
    for cut in ([[0], [1], [2], [3], [4]], [[4, 0], [1, 3], [2]], [[2, 1, 0], [3, 4]]):
        cut_results = evaluate([_part(whole, rows) for rows in cut])
        assert cut_results[0] == pytest.approx(loss, rel=1e-12)
        assert cut_results[1] == pytest.approx(metrics, rel=1e-12)
        torch.testing.assert_close(cut_results[2], gradient, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(cut_results[3], entropy_gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), -float("inf"), 1e9])
@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.report("P037", "P038")
def test_what_masked_places_hold_has_no_influence(random_batch, name, junk):
    clean = random_batch([3, 2, 4])
    spoiled = _spoiled(clean, junk)
    results = [_full_loss(name, batch) for batch in (clean, spoiled)]
    for result in results:
        result.loss.backward()
    count = clean.logprobs.numel()
    assert results[1].loss.item() == results[0].loss.item()
    assert finish_metrics(results[1].metrics) == finish_metrics(results[0].metrics)
    assert torch.equal(spoiled.logprobs.grad[:count], clean.logprobs.grad)
    assert spoiled.logprobs.grad[count:].tolist() == [0.0] * clean.row_count


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.report("P066")
def test_a_batch_without_trained_tokens_is_a_finite_zero(random_batch, name, level):
    batch = random_batch([3, 2])
    batch = replace(batch, mask=torch.zeros_like(batch.mask))
    result = _full_loss(name, batch, importance_sampling_level=level)
    result.loss.backward()
    assert result.loss.item() == 0.0
    assert not batch.logprobs.grad.any()
    assert all(
        value == value and abs(value) <= 1 for value in finish_metrics(result.metrics).values()
    )


@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.report("P066")
def test_an_empty_batch_is_a_zero_with_a_gradient(random_batch, name):
    batch = _part(random_batch([2]), [0])
    empty = replace(
        batch,
        **{field: getattr(batch, field)[:0] for field in (*TENSORS, "mask", "row")},
    )
    result = _full_loss(name, empty)
    result.loss.backward()
    assert result.loss.item() == 0.0


@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.report("P034")
def test_a_row_without_tokens_keeps_its_peers_untouched(random_batch, name):
    batch = random_batch([3, 2])
    longer = replace(
        batch, advantages=torch.cat([batch.advantages, torch.tensor([5.0])]), row_count=3
    )
    totals = Totals.of_batch(batch)
    options = LossOptions(beta=0.1)
    alone = policy_loss(name, batch, options, totals)
    assert policy_loss(name, longer, options, totals).loss.item() == alone.loss.item()


@pytest.mark.parametrize("name", ALL_LOSSES)
def test_a_huge_ratio_leaves_the_gradient_finite(batch_of, name):
    batch = batch_of(
        [[-1.0, -2.0]],
        old_logprobs=[[-500.0, -2.0]],
        advantages=[1.0],
        dtype=torch.float32,
    )
    result = policy_loss(name, batch, LossOptions(), Totals.of_batch(batch))
    result.loss.backward()
    assert result.loss.isfinite()
    assert batch.logprobs.grad.isfinite().all()


@pytest.mark.report("P062")
def test_kl_has_a_gradient_when_the_advantage_is_zero(batch_of):
    batch = batch_of([[-1.0, -2.0]], ref_logprobs=[[-1.5, -1.0]], advantages=[0.0])
    policy_loss("grpo", batch, LossOptions(beta=1.0), Totals.of_batch(batch)).loss.backward()
    assert (batch.logprobs.grad.abs() > 0.1).all()


def test_entropy_bonus_has_a_gradient(random_batch):
    batch = random_batch([2, 2])
    options = LossOptions(entropy_coef=0.4)
    policy_loss("dapo", batch, options, Totals.of_batch(batch)).loss.backward()
    assert batch.entropies.grad.tolist() == pytest.approx([-0.1] * 4)


def test_without_old_logprobs_the_ratio_is_one(batch_of):
    batch = batch_of([[-1.0, -2.0]], advantages=[0.7])
    result = policy_loss("dapo", batch, LossOptions(), Totals.of_batch(batch))
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-0.7)
    assert batch.logprobs.grad.tolist() == pytest.approx([-0.35, -0.35])


@pytest.mark.report("P047")
def test_short_ranks_do_not_weigh_more_than_their_tokens(batch_of):
    # Ten tokens of loss 1 on one rank, a thousand of loss 3 on the other.
    short = batch_of([[-1.0] * 10], advantages=[-1.0])
    long = batch_of([[-1.0] * 1000], advantages=[-3.0])
    totals = Totals.of_batch(short) + Totals.of_batch(long)
    loss = sum(
        policy_loss("bnpo", part, LossOptions(), totals).loss.item() for part in (short, long)
    )
    assert loss == pytest.approx((10 + 3000) / 1010)


def test_metrics_of_unequal_ranks_are_weighted_by_tokens(batch_of):
    short = batch_of([[-1.0] * 10], entropies=[[1.0] * 10], advantages=[1.0])
    long = batch_of([[-1.0] * 1000], entropies=[[3.0] * 1000], advantages=[1.0])
    totals = Totals(tokens=1010, rows=2)
    parts = [policy_loss("dapo", part, LossOptions(), totals).metrics for part in (short, long)]
    assert finish_metrics(combine_metrics(parts))["entropy"] == pytest.approx(3010 / 1010)


@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.contract(39)
@pytest.mark.report("P046")
def test_dropping_truncated_samples_gives_the_loss_of_the_others(random_batch, name):
    samples = random_samples([6, 9, 5, 8])
    half_truncated = [replace(s, is_truncated=i % 2 == 0) for i, s in enumerate(samples)]
    kept = trainable(half_truncated, drop_truncated=True)
    assert kept == [half_truncated[1], half_truncated[3]]
    assert Totals.of_samples(kept) == Totals.of_samples([samples[1], samples[3]])
    batch = random_batch([s.trained_tokens() for s in samples])
    survivors = _part(batch, [1, 3])
    expected = policy_loss(name, survivors, LossOptions(), Totals.of_batch(survivors))
    actual = policy_loss(name, survivors, LossOptions(), Totals.of_samples(kept))
    assert actual.loss.item() == expected.loss.item()


@pytest.mark.contract(39)
@pytest.mark.report("P046", "P066")
def test_all_truncated_leaves_nothing_to_train():
    samples = [replace(sample, is_truncated=True) for sample in random_samples([5, 6])]
    assert trainable(samples, drop_truncated=True) == []
    assert trainable(samples) == samples
    assert Totals.of_samples([]) == Totals(tokens=0, rows=0)


# vespo weighs each row by a statistic of that row, so it is the exception.
@pytest.mark.parametrize("name", [name for name in ALL_LOSSES if name != "vespo"])
@pytest.mark.report("P056")
def test_an_episode_in_several_rows_weighs_as_one_in_one_row(random_batch, name):
    one_row = replace(
        random_batch([4, 6]), advantages=torch.tensor([0.5, -0.8], dtype=torch.float64)
    )
    split = replace(
        one_row,
        row=torch.tensor([0] * 4 + [1] * 2 + [2] * 4),
        advantages=torch.tensor([0.5, -0.8, -0.8], dtype=torch.float64),
        episode_share=torch.tensor([1.0, 1 / 3, 2 / 3], dtype=torch.float64),
        row_count=3,
    )
    options = LossOptions(beta=0.1)
    results = [
        policy_loss(name, batch, options, Totals.of_batch(batch)) for batch in (one_row, split)
    ]
    assert results[1].loss.item() == pytest.approx(results[0].loss.item(), rel=1e-12)


def test_shares_of_an_episode_sum_to_one():
    first, second, third = random_samples([12, 7, 9])
    shares = episode_shares(
        [first, replace(second, episode=(0, 9)), replace(third, episode=(0, 9))]
    )
    assert shares[0] == 1.0
    assert shares[1] + shares[2] == pytest.approx(1.0)
    expected = second.trained_tokens() / third.trained_tokens()
    assert shares[1] / shares[2] == pytest.approx(expected)


@pytest.mark.parametrize("name", ALL_LOSSES)
def test_equal_advantages_at_each_token_are_the_row_advantage(random_batch, name):
    batch = random_batch([3, 2, 4])
    by_token = replace(batch, advantages=batch.advantages[batch.row], has_token_advantages=True)
    results = [_full_loss(name, b) for b in (batch, by_token)]
    assert results[1].loss.item() == pytest.approx(results[0].loss.item(), rel=1e-12)
    assert finish_metrics(results[1].metrics) == pytest.approx(finish_metrics(results[0].metrics))


def test_entropy_threshold_keeps_the_top_share():
    entropies = torch.tensor([0.5, 9.0, 0.2, 1.0, 0.3, 0.7])
    mask = torch.tensor([1, 0, 1, 1, 1, 1])
    threshold = entropy_threshold(entropies, mask, 0.4)
    assert threshold == pytest.approx(torch.quantile(entropies[mask.bool()], 0.6).item())
    assert entropy_threshold(entropies, mask, 1.0) is None
    assert entropy_threshold(entropies, torch.zeros(6), 0.4) is None


@settings(max_examples=40)
@given(
    values=st.lists(st.floats(0, 10, width=32), min_size=1, max_size=30),
    quantile=st.floats(0, 0.99),
)
def test_entropy_threshold_is_the_linear_quantile(values, quantile):
    entropies = torch.tensor(values, dtype=torch.float64)
    expected = torch.quantile(entropies, 1.0 - quantile).item()
    actual = entropy_threshold(entropies, torch.ones(len(values)), quantile)
    assert actual == pytest.approx(expected, abs=1e-9)


def test_unknown_loss_names_the_known_ones(random_batch):
    batch = random_batch([2])
    with pytest.raises(UsageError, match=r"'gpro'.*dapo"):
        policy_loss("gpro", batch, LossOptions(), Totals.of_batch(batch))


def test_missing_inputs_are_named(batch_of):
    batch = batch_of([[-1.0]], advantages=[1.0])
    totals = Totals.of_batch(batch)
    with pytest.raises(ValueError, match="ref_logprobs"):
        policy_loss("dapo", batch, LossOptions(beta=0.1), totals)
    with pytest.raises(ValueError, match="entropies"):
        policy_loss("dapo", batch, LossOptions(entropy_coef=0.1), totals)
    with pytest.raises(ValueError, match="entropies"):
        policy_loss("dapo", batch, LossOptions(), totals, entropy_threshold=0.1)


def test_shapes_that_do_not_fit_are_named(random_batch):
    batch = random_batch([2, 3])
    with pytest.raises(ValueError, match=r"old_logprobs has shape \(4,\)"):
        replace(batch, old_logprobs=torch.zeros(4))
    with pytest.raises(ValueError, match="one entry a row"):
        replace(batch, advantages=torch.zeros(5))


@pytest.mark.parametrize(
    "options",
    [
        {"top_entropy_quantile": 1.5},
        {"max_completion_length": 0},
        {"importance_sampling_level": "word"},
    ],
)
def test_options_no_loss_can_use_are_refused(options):
    with pytest.raises(ValueError, match=r"top_entropy|max_completion|word"):
        LossOptions(**options)


def test_a_masking_importance_ratio_does_not_shrink_the_divisor(batch_of):
    batch = batch_of([[-1.0, -1.0]], advantages=[1.0])
    ratio = ImportanceRatio(values=torch.tensor([1.0, 0.0]).double())
    result = policy_loss(
        "dapo", batch, LossOptions(), Totals.of_batch(batch), importance_ratio=ratio
    )
    assert result.loss.item() == pytest.approx(-0.5)
