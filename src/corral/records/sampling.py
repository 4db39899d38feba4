"""What is asked of an engine, and what it answers."""

from dataclasses import dataclass
from enum import StrEnum


class Finish(StrEnum):
    """Why an engine stopped sampling."""

    STOP = "stop"
    """A stop id was sampled; it is the last of the ids."""
    LENGTH = "length"
    """``max_new_tokens`` ids were sampled without a stop id, or the context is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How one turn is sampled. Temperature 0 is greedy: the arg max, with logprob 0 mass moved
    nowhere, i.e. the logprob reported is that of the unmodified distribution at temperature 1."""

    max_new_tokens: int
    stop_ids: frozenset[int]
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 is off."""
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    """Seed of this request's own random stream; the draw of token i depends on (seed, i) only."""

    def __post_init__(self) -> None:
        problems = [
            (self.max_new_tokens < 1, "max_new_tokens", "at least 1"),
            (self.temperature < 0, "temperature", "0 or more"),
            (not 0 < self.top_p <= 1, "top_p", "in (0, 1]"),
            (self.top_k < 0, "top_k", "0 (off) or more"),
            (not 0 <= self.min_p <= 1, "min_p", "in [0, 1]"),
            (self.repetition_penalty <= 0, "repetition_penalty", "above 0"),
        ]
        for is_wrong, name, legal in problems:
            if is_wrong:
                raise ValueError(f"{name}={getattr(self, name)!r}: must be {legal}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One sampled turn: the engine's own ids, never a re-encoding of text."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each id under the distribution it was drawn from (after temperature,
    penalties and filters)."""
    finish: Finish
    version: int
    """Version of the weights that drew the ids."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.logprobs):
            raise ValueError(
                f"{len(self.ids)} ids but {len(self.logprobs)} logprobs: an engine must "
                "return one logprob for each sampled id."
            )
