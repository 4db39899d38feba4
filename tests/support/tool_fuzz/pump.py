"""Whether reading a turn takes time in proportion to its length, whatever is repeated in it."""

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.chat import parse_turn
from support.tool_fuzz.material import pieces_of, words_of
from support.tool_fuzz.phrases import Phrases

SIZES = (250, 1_000, 4_000, 16_000)
"""Characters at which all texts are tried."""
LONG_SIZES = (64_000, 256_000, 1_000_000)
"""Characters at which the slowest of them are tried, too."""
SLOWEST = 5
"""How many those are."""
RATIO = 8.0
"""How much longer a text four times as long may take."""
LEAST_S = 0.05
"""Processor seconds below which nothing is too slow: clocks and caches have their say."""
STRAY = (" ", "\n", '"', "'", "\\", "{", "[", '{"a": ', "[1, ", "<", "a", "1")
"""What broken output repeats."""


@dataclass(frozen=True)
class Slow:
    """A text that takes more than its share."""

    text: str
    short_s: float
    long_s: float


def slow_texts(phrases: Phrases, pieces: Sequence[str] | None = None) -> tuple[int, list[Slow]]:
    """How many texts were tried, and those whose time grows faster than their length.

    Args:
        pieces: What is repeated after each beginning of a call; None: all that fuzzing knows.
    """
    slow = list[Slow]()
    timed: list[tuple[float, str, str]] = []
    for before, piece in _pumps(phrases, pieces):
        last = _growth(phrases, before, piece, SIZES)
        if isinstance(last, Slow):
            slow.append(last)
        else:
            timed.append((last, before, piece))
    for short_s, before, piece in heapq.nlargest(SLOWEST, timed):
        last = _growth(phrases, before, piece, LONG_SIZES, short_s)
        slow += [last] if isinstance(last, Slow) else []
    return len(timed) + len(slow), slow


def _pumps(phrases: Phrases, pieces: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    syntax = phrases.chat.syntax
    words = words_of(phrases.form)
    if pieces is None:
        joined = ["".join(words[at : at + size]) for size in (2, 3, 5) for at in range(len(words))]
        pieces = [*STRAY, *pieces_of(phrases), *joined]
    own = (phrases.form, phrases.opening(), syntax.closes, *syntax.reasoning)
    repeated = [piece for piece in dict.fromkeys([*pieces, *own]) if piece]
    samples = [words, words_of(syntax.example)]
    prefixes = {"".join(sample[:end]) for sample in samples for end in range(len(sample) + 1)}
    for before in sorted(prefixes):
        yield from ((before, piece) for piece in repeated)


def _growth(
    phrases: Phrases, before: str, piece: str, sizes: Sequence[int], short_s: float = 0.0
) -> float | Slow:
    """Seconds at the last size, unless one takes too long for what the one before it took."""
    shorter = ""
    for size in sizes:
        text = before + piece * (size // len(piece) + 1)
        long_s = _seconds(phrases, text)
        if long_s > RATIO * max(short_s, LEAST_S):
            # Something else may have had the processor: the best of three is what it takes.
            long_s = min(long_s, *(_seconds(phrases, text) for _ in range(2)))
            short_s = max(short_s, *(_seconds(phrases, shorter) for _ in range(3)))
            if long_s > RATIO * max(short_s, LEAST_S):
                return Slow(f"{before}{piece} and so on", short_s, long_s)
        short_s, shorter = long_s, text
    return short_s


def _seconds(phrases: Phrases, text: str) -> float:
    chat = phrases.chat
    started = time.thread_time()
    parse_turn(text, syntax=chat.syntax, types=chat.types, opens_thinking=chat.opens_thinking)
    return time.thread_time() - started
