"""Rows packed into blocks."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.training.blocks import best_fit, pack_blocks
from corral.training.token_rows import TokenRow


def row(*ids: int) -> TokenRow:
    return TokenRow(ids, (1,) * len(ids))


ROWS = [row(1, 2, 3, 4, 5), row(6, 7), row(8, 9, 10), row(11)]


def ids(strategy: str, width: int = 4) -> list[list[tuple[int, ...]]]:
    blocks = pack_blocks(ROWS, width, strategy)  # type: ignore[arg-type]
    return [[one.ids for one in block] for block in blocks]


def test_rows_go_where_they_fit_best_and_too_long_ones_are_cut() -> None:
    assert ids("bfd") == [[(1, 2, 3, 4)], [(8, 9, 10), (11,)], [(6, 7)]]


def test_too_long_rows_are_split() -> None:
    assert ids("bfd_split") == [[(1, 2, 3, 4)], [(8, 9, 10), (5,)], [(6, 7), (11,)]]


def test_wrapped_rows_are_one_and_fill_every_block() -> None:
    assert ids("wrapped") == [[(1, 2, 3, 4)], [(5, 6, 7, 8)], [(9, 10, 11)]]


def test_a_split_row_keeps_its_mask() -> None:
    masked = TokenRow((1, 2, 3, 4, 5), (0, 0, 1, 0, 1))
    for strategy in ("bfd_split", "wrapped"):
        blocks = list(pack_blocks([masked], 3, strategy))  # type: ignore[arg-type]
        pieces = [piece for block in blocks for piece in block]
        assert [piece.is_trained for piece in pieces] == [(0, 0, 1), (0, 1)]


@given(st.lists(st.integers(1, 12), max_size=40))
def test_every_row_is_in_one_block_and_no_block_is_too_long(lengths: list[int]) -> None:
    blocks = best_fit(lengths, 12)
    assert sorted(index for block in blocks for index in block) == list(range(len(lengths)))
    sizes = [sum(lengths[index] for index in block) for block in blocks]
    assert all(0 < size <= 12 for size in sizes)
    # Two half-empty blocks would be one.
    assert sum(size <= 6 for size in sizes) <= 1


@pytest.mark.parametrize("strategy", ["bfd", "bfd_split", "wrapped"])
def test_blocks_of_a_stream_come_before_it_ends(strategy: str) -> None:
    read = []

    def rows() -> Iterator[TokenRow]:
        for number in range(5000):
            read.append(number)
            yield row(number)

    next(iter(pack_blocks(rows(), 4, strategy)))  # type: ignore[arg-type]
    assert len(read) == 1000
