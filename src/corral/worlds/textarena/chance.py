"""A stream of chance for each game, in place of the one that TextArena's games share."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.RLock()
"""The generators of the process are put back before anybody else's turn."""
_WAIT_S = 120.0
"""Making a game, and a few turns of others before, take seconds at most."""


class OwnChance:
    """TextArena's games draw from the generators of the process, also from NumPy's.

    Within `used` those are this game's own; outside they are as if it had never been played.
    """

    def __init__(self) -> None:
        self._states: tuple[Any, Any] = _fresh(0)

    def seed(self, seed: int) -> None:
        """Begin anew."""
        self._states = _fresh(seed)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have the process's generators draw this game's chance; one game at a time.

        Raises:
            TimeoutError: Another game does not come back from its turn.
        """
        if not _LOCK.acquire(timeout=_WAIT_S):
            raise TimeoutError(f"Another game of TextArena has not come back for {_WAIT_S:g} s.")
        try:
            outside = _states()
            _set(self._states)
            try:
                yield
            finally:
                self._states = _states()
                _set(outside)
        finally:
            _LOCK.release()


def _fresh(seed: int) -> tuple[Any, Any]:
    import numpy

    return random.Random(seed).getstate(), numpy.random.RandomState(seed % 2**32).get_state()


def _states() -> tuple[Any, Any]:
    import numpy

    return random.getstate(), numpy.random.get_state()


def _set(states: tuple[Any, Any]) -> None:
    import numpy

    random.setstate(states[0])
    numpy.random.set_state(states[1])
