"""An environment of verifiers that serves, on an event loop of its own."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from corral.env.io_thread import IoThread
from corral.errors import UsageError
from corral.worlds.tasks import place_of
from corral.worlds.verifiers.episode import Episode
from corral.worlds.verifiers.loading import load

ENDLESS_TASKS = 1000
"""How many tasks are played of a taskset that has no end."""


def loop() -> IoThread:
    """The event loop of all stages: environments may compute long without giving way."""
    return _loop_of(os.getpid())


@cache
def _loop_of(process_id: int) -> IoThread:
    return IoThread()


class Stage:
    """An environment with what it shares among its episodes: servers of tools, a recorder, us.

    From `open` on all of it happens on `loop`.
    """

    def __init__(
        self, name: str, settings: Mapping[str, Any], env: Mapping[str, Any], *, timeout_s: float
    ) -> None:
        self.name, self.timeout_s = name, timeout_s
        self._settings, self._env_options = settings, env
        self._closing: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._known: list[Any] = []

    async def open(self) -> None:
        """Load it, and start what it shares.

        Raises:
            UsageError: There is none, or it does not take these settings.
        """
        from corral.worlds.verifiers.endpoint import ModelEndpoint

        self.env, self.seat = load(self.name, self._settings, self._env_options)
        self.endpoint = ModelEndpoint()
        self._unread: Iterator[Any] = iter(self.env.taskset)
        self._known = []
        self._closing = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready, self._closing))
        loop().close_at_exit(self)
        await ready

    async def close(self) -> None:
        """End it, and all servers it has started."""
        if self._closing is not None and self._task is not None:
            self._closing.set()
            await asyncio.wait([self._task])

    def task(self, seed: int) -> Any:
        """The task that a seed stands for; those of evaluations are kept for them.

        Raises:
            UsageError: There is no task at all.
        """
        return self._numbered(place_of(seed, self._count()))

    def task_at(self, index: int) -> Any:
        """The task at a place of the taskset.

        Raises:
            UsageError: There is none.
        """
        if not 0 <= index < self._count():
            raise UsageError(f"index={index}: {self.name} has the tasks 0 to {self._count() - 1}.")
        return self._numbered(index)

    def episode(self, task: Any) -> Episode:
        """A fresh episode of a task."""
        return Episode(self, task)

    async def _hold(self, ready: asyncio.Future[None], closing: asyncio.Event) -> None:
        """Its whole life in one task: some of what it opens must be left where it was entered."""
        from verifiers.v1.clients import (  # pyright: ignore[reportMissingImports]
            EvalClientConfig,
            ModelContext,
        )

        try:
            await self.endpoint.open()
            client = EvalClientConfig(base_url=self.endpoint.url, api_key_var="CORRAL_NO_KEY")
            self.context = ModelContext(model="corral", client=client)
            async with self.env.serving():
                ready.set_result(None)
                await closing.wait()
        except Exception as error:  # noqa: BLE001 - told to who waits; later it is merely the end
            if not ready.done():
                ready.set_exception(error)
        finally:
            await self.endpoint.close()

    def _count(self) -> int:
        if not self.env.taskset.bounded:
            return ENDLESS_TASKS
        self._known += self._unread
        return len(self._known)

    def _numbered(self, index: int) -> Any:
        self._known += islice(self._unread, max(0, index + 1 - len(self._known)))
        return self._known[index]
