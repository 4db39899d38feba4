"""Processes whose environments were closed, kept for a while for the next ones."""

import threading

from corral.env.own_process.started import Started


class Kept:
    """Processes that wait, the last one in front; each is ended unless it is taken in time."""

    def __init__(self, seconds: float) -> None:
        """
        Args:
            seconds: How long each waits; with 0 none does.
        """
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: dict[Started, threading.Timer] = {}
        """With what ends them when their time is up."""

    def take(self) -> Started | None:
        """A process that waits, which is the taker's now; None if there is none."""
        with self._lock:
            while self._waiting:
                started, timer = self._waiting.popitem()
                timer.cancel()
                if started.is_waiting:
                    return started
                started.end()
        return None

    def give(self, started: Started) -> bool:
        """Keep a process; False if it is not kept, and has to be ended."""
        if not self._seconds or not started.is_waiting:
            return False
        timer = threading.Timer(self._seconds, self._end, [started])
        timer.daemon = True  # when this process ends, so do they: the pipes to them close
        with self._lock:
            self._waiting[started] = timer
        timer.start()
        return True

    def _end(self, started: Started) -> None:
        """End a process, if it has not been taken meanwhile."""
        with self._lock:
            if self._waiting.pop(started, None) is None:
                return
        started.say_goodbye()
        started.end()
