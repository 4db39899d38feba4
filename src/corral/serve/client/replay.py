"""What a session has done since its last reset, so that it can be done again and compared."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from corral.serve.client.connection import Frame
from corral.serve.client.errors import SessionLostError


class ReplayDiffersError(SessionLostError):
    """A repeated episode gave another answer than the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One request with the fingerprint of its answer; an answer may be large."""

    frame: Frame
    fingerprint: bytes


class EpisodeLog:
    """The requests of the episode under way, in order."""

    def __init__(self) -> None:
        self._done: list[Done] = []

    def add(self, frame: Frame, answer: Frame) -> None:
        """Note a request that was answered; a ``reset`` begins the log anew."""
        if frame.get("type") == "reset" and answer.get("type") != "error":
            self._done.clear()
        if frame.get("type") != "state":  # asking for the state changes nothing
            self._done.append(Done(frame=frame, fingerprint=fingerprint(answer)))

    async def repeat(self, ask: Callable[[Frame], Awaitable[Frame]]) -> None:
        """Make all requests again.

        Raises:
            ReplayDiffersError: An answer is not the one it was.
        """
        for place, done in enumerate(self._done):
            if fingerprint(await ask(done.frame)) != done.fingerprint:
                raise ReplayDiffersError(
                    "The session was lost, and playing it again gave another answer to request "
                    f"{place + 1} of {len(self._done)} ({done.frame.get('type')!r}), although the "
                    "server says that its world can be replayed."
                )


def fingerprint(answer: Frame) -> bytes:
    """What two answers have in common if and only if they say the same."""
    data = answer.get("data")
    if answer.get("type") == "error" and isinstance(data, dict):
        data = data.get("code")  # texts may have a serial number
    told = json.dumps([answer.get("type"), data], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()
