"""Whether reading a turn takes time in proportion to its length, whatever is repeated in it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from corral.chat import parse_turn
from support.tool_fuzz.material import pieces_of, words_of
from support.tool_fuzz.phrases import Phrases

SIZE = 2_000
FACTOR = 16
SLACK = 3.0
"""How much more than ``FACTOR`` times as long a text ``FACTOR`` times as long may take."""
LEAST_S = 0.1
"""Processor seconds below which nothing is too slow: clocks and caches have their say."""


@dataclass(frozen=True)
class Slow:
    """A text that takes more than its share."""

    text: str
    short_s: float
    long_s: float


def slow_texts(phrases: Phrases) -> tuple[int, list[Slow]]:
    """How many texts were tried, and those whose time grows faster than their length."""
    tried, slow = 0, list[Slow]()
    for before, piece in _pumps(phrases):
        tried += 1
        long_s = _seconds(phrases, before + piece * (SIZE * FACTOR // len(piece)))
        if long_s < LEAST_S:
            continue
        short_s = _seconds(phrases, before + piece * (SIZE // len(piece)))
        if long_s > short_s * FACTOR * SLACK:
            slow.append(Slow(f"{before}{piece} and so on", short_s, long_s))
    return tried, slow


def _pumps(phrases: Phrases) -> Iterator[tuple[str, str]]:
    words = words_of(phrases.form)
    joined = ["".join(words[at : at + size]) for size in (2, 3, 5) for at in range(len(words))]
    pieces = [piece for piece in dict.fromkeys([*pieces_of(phrases), *joined]) if piece]
    form = phrases.form
    name, value = form.find("NAMEhole"), form.find("VALUEhole")
    for before in ("", form[:name], form[: name + 4], form[:value], form[: value + 5], form):
        yield from ((before, piece) for piece in pieces)


def _seconds(phrases: Phrases, text: str) -> float:
    chat = phrases.chat
    started = time.thread_time()
    parse_turn(text, syntax=chat.syntax, types=chat.types, opens_thinking=chat.opens_thinking)
    return time.thread_time() - started
