"""An environment at its server, and sessions with it; all on the event loop of the clients."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any

from corral.env.io_thread import io_thread
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from corral.worlds.openreward.serving import openreward

_HTTP = "openreward.api._session.http"
_GOODBYE_S = 5.0


class Connection:
    """An environment as its server tells it."""

    def __init__(
        self,
        name: str,
        *,
        url: str | None,
        split: str | None,
        variant: str | None,
        timeout_s: float,
    ) -> None:
        self.name, self._url, self._split, self._variant = name, url, split, variant
        self._timeout_s = timeout_s
        self._counts: dict[str, int] = {}
        self._client: Any = None

    async def open(self) -> None:
        """Find the environment, and its split.

        Raises:
            UsageError: The server has none of this name, or it has no such split.
            InfrastructureFault: The server does not answer.
        """
        self._client = openreward().AsyncOpenReward().environments
        io_thread().close_at_exit(self)
        self._environment = self._client.get(self.name, variant=self._variant, base_url=self._url)
        async with self.answering():
            splits = await self._environment.list_splits()
        if self._split is None and splits:
            self._split = "train" if "train" in splits else splits[0]
        if self._split not in splits:
            raise UsageError(
                f"split={self._split!r}: {self.name} has the splits {', '.join(splits) or 'none'}."
            )

    async def close(self) -> None:
        """Leave the server."""
        if self._client is not None:
            await self._client.aclose()

    async def count(self, split: str | None) -> int:
        """How many tasks a split has; by default the one that was named."""
        split = split or self._split
        assert split is not None
        if split not in self._counts:
            async with self.answering():
                self._counts[split] = await self._environment.num_tasks(split)
        return self._counts[split]

    async def session(
        self, *, split: str | None, index: int, task: Mapping[str, Any] | None
    ) -> Any:
        """Begin a task: the one at a place of a split, or one that is given as it is."""
        async with self.answering():
            if task is None:
                told = await self._environment.get_task(split or self._split, index)
            else:
                # Any task tells what the server calls the environment.
                told = await self._environment.get_task(self._split, 0)
                told.task_spec = dict(task)
            return await self._environment.session(task=told).__aenter__()

    @staticmethod
    async def leave(session: Any) -> None:
        """End a session; a server that is gone has ended it already."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await session.__aexit__(None, None, None)

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Say of what fails in here whose fault it is.

        Raises:
            ValueError: The call was not one that the environment takes; the text is for the model.
            EnvironmentFault: The environment's code failed.
            InfrastructureFault: The server is gone, or does not answer in time.
        """
        errors, http = openreward("openreward.api.errors"), openreward(_HTTP)
        aiohttp: Any = import_module("aiohttp")
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except errors.ToolCallError as error:
            raise ValueError(error.detail) from error
        except errors.ToolFailed as error:
            raise EnvironmentFault(f"{self.name}: {error}") from error
        except http.AuthenticationError as error:
            raise UsageError(
                f"The server of {self.name} wants a key: set OPENREWARD_API_KEY."
            ) from error
        except aiohttp.ClientResponseError as error:
            raise self._refused(error) from error
        except TimeoutError as error:
            raise InfrastructureFault(
                f"{self.name} did not answer within {self._timeout_s:g} s."
            ) from error
        except (errors.OpenRewardError, aiohttp.ClientError) as error:
            raise InfrastructureFault(f"{self.name}: {type(error).__name__}: {error}") from error

    def _refused(self, error: Any) -> Exception:
        if error.status == 404:
            return UsageError(
                f"There is no environment {self.name!r} at {self._url or 'OpenReward'}: "
                f"{error.message}"
            )
        kind = EnvironmentFault if error.status == 500 else InfrastructureFault
        return kind(f"{self.name}: {error.status}: {error.message[-1000:]}")
