"""A run that is told to stop says so, and how to go on."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKED = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name)
)
"""Signals by which schedulers, terminals and people end a program that could still tidy up."""


class Killed(BaseException):
    """A signal asked the program to end. No Exception: nothing on the way may take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        """The exit code that shells give to a program ended by this signal."""


@contextmanager
def told_of_signals() -> Iterator[None]:
    """Raise :class:`Killed` in the main thread where a signal would have ended the process."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, _raise) for number in _ASKED if _is_deadly(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_deadly(number: int) -> bool:
    """Whether nobody handles or ignores it (nohup ignores SIGHUP)."""
    return signal.getsignal(number) is signal.SIG_DFL


def _raise(number: int, frame: FrameType | None) -> None:
    raise Killed(number)
