import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.algorithms import collate, cut
from corral.errors import UsageError
from support.random_samples import random_samples


def _cost(lengths, indices, *, packing):
    chosen = [lengths[index] for index in indices]
    return sum(chosen) if packing else len(chosen) * max(chosen)


@given(
    lengths=st.lists(st.integers(1, 50), max_size=40),
    budget=st.integers(1, 120),
    packing=st.booleans(),
)
def test_every_row_is_in_one_micro_batch_within_the_budget(lengths, budget, packing):
    batches = cut(lengths, budget, packing=packing)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or _cost(lengths, batch, packing=packing) <= budget
    assert batches == cut(lengths, budget, packing=packing)


@pytest.mark.parametrize(
    ("packing", "expected"),
    [(True, [[3], [1, 0], [4, 2]]), (False, [[3], [1], [4, 0], [2]])],
)
def test_rows_go_longest_first_and_a_longer_one_goes_alone(packing, expected):
    assert cut([4, 6, 4, 25, 5], 10, packing=packing) == expected


def test_a_budget_without_room_is_refused():
    with pytest.raises(UsageError, match="token budget is 0"):
        cut([1], 0, packing=True)


def test_padded_lines_have_equal_length_and_positions_from_zero():
    samples = random_samples([5, 3])
    micro = collate(samples, [1, 0], packing=False, pad_id=99)
    assert micro.input_ids.tolist() == [[*samples[1].ids, 99, 99], list(samples[0].ids)]
    assert micro.attention_mask.tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert micro.position_ids[1].tolist() == [0, 1, 2, 3, 4]


def test_a_packed_line_restarts_its_positions_at_each_row():
    samples = random_samples([5, 3])
    micro = collate(samples, [1, 0], packing=True)
    assert micro.input_ids.tolist() == [[*samples[1].ids, *samples[0].ids]]
    assert micro.position_ids.tolist() == [[0, 1, 2, 0, 1, 2, 3, 4]]
    assert micro.attention_mask is None


@pytest.mark.parametrize("packing", [True, False])
def test_each_trained_token_is_predicted_from_the_place_before_it(packing):
    samples = random_samples([7, 4, 9, 2])
    order = [2, 0, 3, 1]
    micro = collate(samples, order, packing=packing)
    flat_ids = micro.input_ids.flatten().tolist()
    flat_positions = micro.position_ids.flatten().tolist()
    trained = [
        (row, place)
        for row, index in enumerate(order)
        for place, kept in enumerate(samples[index].loss_mask)
        if kept
    ]
    assert micro.row.tolist() == [row for row, _ in trained]
    for n, (row, place) in enumerate(trained):
        sample = samples[order[row]]
        assert micro.targets[n] == sample.ids[place]
        assert flat_positions[micro.source[n]] == place - 1
        assert flat_ids[micro.source[n]] == sample.ids[place - 1]
        assert micro.sampling_logprobs[n].item() == pytest.approx(sample.logprobs[place])
    assert micro.advantages.tolist() == pytest.approx([samples[i].advantage for i in order])


@pytest.mark.parametrize("said", [(7,), (9, 7), (7, 7, 7)], ids=str)
@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.report("P022")
def test_what_was_said_is_trained_once_even_if_it_is_the_padding(packing, said):
    first, second = random_samples([3, 6])
    first = replace(
        first,
        ids=(1, 2, *said),
        loss_mask=(0, 0, *[1] * len(said)),
        logprobs=(0.0, 0.0, *[-0.5] * len(said)),
    )
    micro = collate([first, second], [0, 1], packing=packing, pad_id=7)
    assert micro.targets[micro.row == 0].tolist() == list(said)
    assert len(micro.targets) == len(said) + second.trained_tokens()


def test_a_micro_batch_carries_the_shares_of_the_step():
    samples = random_samples([4, 4, 4])
    micro = collate(samples, [2, 0], packing=True, episode_shares=[0.25, 0.5, 0.75])
    assert micro.episode_share.tolist() == [0.75, 0.25]
    assert collate(samples, [1], packing=True).episode_share.tolist() == [1.0]


def test_a_row_that_trains_its_first_token_is_refused():
    (sample,) = random_samples([3])
    with pytest.raises(UsageError, match="Sample 0 trains its first token"):
        collate([replace(sample, loss_mask=(1, 0, 0))], [0], packing=True)


def test_unequal_lengths_within_a_sample_are_named():
    (sample,) = random_samples([3])
    with pytest.raises(ValueError, match="3 ids, 2 mask entries"):
        collate([replace(sample, loss_mask=(0, 1))], [0], packing=True)


def test_many_rows_are_cut_quickly():
    chance = random.Random(0)
    lengths = [chance.randint(10, 2000) for _ in range(2000)]
    assert sum(map(len, cut(lengths, 16384, packing=True))) == 2000
