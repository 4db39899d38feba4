"""Wall time by part."""

import time
from collections.abc import Generator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the seconds spent in each named part, from the moment it is made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """Count the time inside towards ``name``, whether or not it ends in an error."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._parts[name] = self._parts.get(name, 0.0) + time.perf_counter() - begin

    def seconds(self) -> dict[str, float]:
        """Seconds of each part, and ``total`` since the start."""
        return {**self._parts, "total": time.perf_counter() - self._started}
