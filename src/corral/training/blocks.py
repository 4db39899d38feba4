"""Packing rows into blocks of one length, so that steps have about as many tokens each."""

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from corral.training.token_rows import TokenRow, token_row

PackingStrategy = Literal["bfd", "bfd_split", "wrapped"]
Block = tuple[TokenRow, ...]

WINDOW = 1000
"""How many rows are packed together: as many as TRL's preparation takes at a time."""


def pack_blocks(rows: Iterable[TokenRow], width: int, strategy: PackingStrategy) -> Iterator[Block]:
    """Blocks of at most ``width`` tokens, from each window of rows.

    ``bfd`` cuts rows to the width and puts each, longest first, where it fits best; ``bfd_split``
    cuts longer rows into several; ``wrapped`` joins all rows and cuts the whole, so that a block is
    one row whose parts see each other.
    """
    source = iter(rows)
    while window := list(islice(source, WINDOW)):
        if strategy == "wrapped":
            yield from ((row,) for row in _wrapped(window, width))
            continue
        pieces = [piece for row in window for piece in _pieces(row, width, strategy)]
        for members in best_fit([len(piece.ids) for piece in pieces], width):
            yield tuple(pieces[index] for index in members)


def best_fit(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Indices of the rows of each block: best-fit decreasing, first come first for equal ones."""
    blocks: list[list[int]] = []
    waiting: dict[int, deque[int]] = defaultdict(deque)
    rooms: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        place = bisect_left(rooms, lengths[index])
        if place < len(rooms):
            room = rooms[place]
            block = waiting[room].popleft()
            if not waiting[room]:
                del rooms[place]
        else:
            room, block = width, len(blocks)
            blocks.append([])
        blocks[block].append(index)
        left = room - lengths[index]
        if left:
            if not waiting[left]:
                insort(rooms, left)
            waiting[left].append(block)
    return blocks


def _pieces(row: TokenRow, width: int, strategy: PackingStrategy) -> list[TokenRow]:
    if strategy == "bfd":
        return [row.cut(slice(width))]
    starts = range(0, len(row.ids), width)
    return [row.cut(slice(start, start + width)) for start in starts]


def _wrapped(rows: Sequence[TokenRow], width: int) -> list[TokenRow]:
    ids = [token for row in rows for token in row.ids]
    mask = [bit for row in rows for bit in row.is_trained]
    starts = range(0, len(ids), width)
    return [token_row(ids[at : at + width], mask[at : at + width]) for at in starts]
