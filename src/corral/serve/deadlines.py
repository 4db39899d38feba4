"""Time limits of many short calls, without a timer for each.

A timer a call costs more than the call itself where environments are quick. One look at all that
is under way, some 20 times a second and only while anything is, finds the few that take too long.
"""

import asyncio
import time

_INTERVAL_S = 0.05


class Deadline:
    """When one task has to be done with what it awaits."""

    __slots__ = ("_cancelling", "at", "is_over", "task")

    def __init__(self, task: "asyncio.Task[object]", at: float) -> None:
        self.task = task
        self.at = at
        self.is_over = False
        self._cancelling = task.cancelling()

    def is_cause(self) -> bool:
        """Whether a cancellation that arrived is this deadline's, and nobody else's."""
        return self.is_over and self.task.uncancel() <= self._cancelling


class Deadlines:
    """All calls under way on one event loop."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, limit_s: float) -> Deadline:
        """From now on the current task has so long. It must be told to `stop`."""
        task = asyncio.current_task()
        assert task is not None
        deadline = Deadline(task, time.monotonic() + limit_s)
        self._running.add(deadline)
        if self._timer is None:
            self._timer = task.get_loop().call_later(_INTERVAL_S, self._look)
        return deadline

    def stop(self, deadline: Deadline) -> None:
        """The task is done with it."""
        self._running.discard(deadline)

    def _look(self) -> None:
        now = time.monotonic()
        for deadline in [each for each in self._running if each.at <= now]:
            deadline.is_over = True
            deadline.task.cancel()
            self._running.discard(deadline)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_INTERVAL_S, self._look) if self._running else None
