"""One asked-for turn, from the call to ``sample`` until its result is delivered."""

import asyncio
from dataclasses import dataclass

import numpy as np

from corral.records import PlacedImage, Sampled, SamplingParams


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """A turn to sample. The scheduler owns everything but ``future`` once it is submitted."""

    key: str
    prompt: np.ndarray
    """Ids; the placeholders of an image are a negative number that stands for it."""
    params: SamplingParams
    future: asyncio.Future[Sampled]
    version: int = 0
    """Of the weights when the request got its row."""
    slot: int = -1
    """Row of the cache it runs in; -1 while it waits."""
    start: int = 0
    """How many tokens of the prompt are in the cache already."""
    source: "Request | None" = None
    """Whose prefill this one waits for, to copy a common prefix of ``shared`` tokens."""
    shared: int = 0
    images: tuple[PlacedImage, ...] = ()
    placeholder: int = -1
    """The id that stands for pixels."""
    positions: np.ndarray | None = None
    """[3, tokens] where the model counts an image's rows and columns; None: 0, 1, 2, ..."""
    rope_shift: int = 0
    """What is added to a place after the prompt to get its position."""

    def whole_images(self, tokens: int) -> int:
        """At most so many leading tokens, and no part of an image."""
        cut = [one.start for one in self.images if one.start < tokens < one.stop]
        return cut[0] if cut else tokens

    def is_abandoned(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self.future.done()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A sampled turn to deliver to whoever awaits the request."""

    request: Request
    sampled: Sampled
