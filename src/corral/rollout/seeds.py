"""Seeds: every random choice is a pure function of what it is for."""

from collections.abc import Iterable
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")

SEED_BITS = 63
"""Fits a signed 64-bit integer, which is what random generators of all libraries take."""


def derive(*parts: int | str) -> int:
    """A seed for whatever ``parts`` name, the same in every process and Python version.

    Parts are told apart by type and position: ``derive(1, 23)``, ``derive(12, 3)`` and
    ``derive("1", 23)`` are three different seeds::

        turn_seed = derive(task.seed, member, turn)
    """
    digest = blake2b(digest_size=8)
    for part in parts:
        text = str(int(part)) if isinstance(part, int) else part
        kind = "i" if isinstance(part, int) else "s"
        encoded = text.encode()
        digest.update(f"{kind}{len(encoded)}:".encode())
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "big") >> (64 - SEED_BITS)


def shuffled(items: Iterable[T], *parts: int | str) -> list[T]:
    """The items in a random order that depends on ``parts`` alone."""
    order = list(items)
    Random(derive(*parts)).shuffle(order)
    return order
