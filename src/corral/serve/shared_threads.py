"""Threads that many sessions share: for environments that are bound to none.

Waking a thread for every call costs more than a quick call itself. Where the class says
``REQUIRES_OWN_THREAD = False``, one thread does the calls of all sessions, one after the other,
without going to sleep in between. A call that takes long holds nobody up: the thread is left to it,
and another one goes on with what waits.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakKeyDictionary

from corral.env.threads import awaited, is_awaitable, plain_exception
from corral.serve.threads import EnvironmentThread, Job, Results, results_of

_PATIENCE_S: Final = 0.002
"""How long a call may hold up others."""
_SHARED: "WeakKeyDictionary[asyncio.AbstractEventLoop, SharedThreads]" = WeakKeyDictionary()


class SharedThread:
    """One session's place among them: its calls run in order, never two at a time."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.jobs: deque[Job] = deque()
        """What is under way, and what waits for it."""
        if loop not in _SHARED:
            _SHARED[loop] = SharedThreads(results_of(loop))
        self._threads = _SHARED[loop]

    def submit(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Queue a call; the future of the calling loop gets what it returns or raises."""
        future = asyncio.get_running_loop().create_future()
        self._threads.put(self, (function, future))
        return future

    def stop(self) -> None:
        """Nothing to do: the threads are others' too."""

    def cancel_tasks(self) -> None:
        """Nothing to do: there are no coroutines."""


SessionThread = EnvironmentThread | SharedThread


def start_thread(name: str, *, is_own: bool) -> SessionThread:
    """Where the calls of a new session run: in its own thread, or in one with others."""
    return EnvironmentThread(name=name) if is_own else SharedThread()


class SharedThreads:
    """The threads of one event loop; of those, one at a time takes what waits."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._ready: deque[SharedThread] = deque()
        """Sessions whose first job may run."""
        self._lock = threading.Lock()
        self._active: _Worker | None = None
        self._idle: list[_Worker] = []
        self._taken = 0
        self._taken_before = 0
        self._is_starting = False
        self._timer: asyncio.TimerHandle | None = None

    def put(self, session: SharedThread, job: Job) -> None:
        """Queue a job; called on the event loop."""
        with self._lock:
            session.jobs.append(job)
            if len(session.jobs) == 1:
                self._ready.append(session)
        if not self._is_starting:  # all that comes in this round of the event loop in one go
            self._is_starting = True
            asyncio.get_running_loop().call_soon(self._start)

    def work(self, worker: "_Worker") -> None:
        """Take what waits until nothing does, or another worker has taken over."""
        while self._active is worker:
            with self._lock:
                if not self._ready:
                    if self._active is worker:
                        self._active = None
                    break
                session = self._ready.popleft()
                self._taken += 1
            self._run(session.jobs[0])
            with self._lock:
                session.jobs.popleft()
                if session.jobs:
                    self._ready.append(session)
                    self._activate()
            del session
        self._idle.append(worker)

    def _start(self) -> None:
        self._is_starting = False
        with self._lock:
            if self._ready:
                self._activate()
        if self._timer is None:
            self._taken_before = -1
            self._watch()

    def _activate(self) -> None:
        if self._active is None:
            self._active = self._idle.pop() if self._idle else _Worker(self)
            self._active.wake()

    def _watch(self) -> None:
        """Look whether somebody waits for a call that takes long."""
        with self._lock:
            if self._ready and self._taken == self._taken_before:
                self._active = None
                self._activate()
            self._taken_before = self._taken
            is_needed = self._active is not None or self._ready
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_PATIENCE_S, self._watch) if is_needed else None

    def _run(self, job: Job) -> None:
        function, future = job
        try:
            value = function()
            if is_awaitable(value):
                value = asyncio.run(awaited(value))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._results.put(future, None, plain_exception(error))
        else:
            self._results.put(future, value)


class _Worker:
    """A thread that sleeps when it has nothing to do."""

    def __init__(self, threads: SharedThreads) -> None:
        self._threads = threads
        self._calls: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._work, name="corral-shared", daemon=True).start()

    def wake(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while True:
            self._calls.get()
            self._threads.work(self)
