"""An environment of OpenReward as an environment class."""

import threading
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from corral.env.io_thread import io_thread
from corral.env.signatures import ToolSpec
from corral.errors import EnvironmentFault
from corral.worlds.calling import calling_methods
from corral.worlds.conversation import Shown, shown
from corral.worlds.openreward.connection import Connection
from corral.worlds.openreward.serving import served
from corral.worlds.tasks import place_of

_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


class OpenRewardTasks:
    """A factory of environments that play the tasks of a split.

    ::

        factory = OpenRewardTasks("my_env", url="http://127.0.0.1:8080")
        factory = OpenRewardTasks("my_env.py:MyEnv", split="test")

    The first one connects and begins the first task, to see what tools a model is given.
    """

    REQUIRES_OWN_THREAD = False

    def __init__(
        self,
        name: str,
        *,
        url: str | None = None,
        split: str | None = None,
        variant: str | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """
        Args:
            name: As its server calls it, or the class of one that is to be served here.
            url: Of the server; by default OpenReward's platform, which wants a key.
            split: Whose tasks are played; by default ``train``, or the first there is.
            variant: Which environment, of a server that has several.
            timeout_s: For each answer of the server.
        """
        self._name, self._url = name, url
        self._options: dict[str, Any] = {"split": split, "variant": variant, "timeout_s": timeout_s}
        self._class: type[OpenRewardEnvironment] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> "OpenRewardEnvironment":
        """Make an environment.

        Raises:
            UsageError: There is no such environment, or split.
            InfrastructureFault: Its server does not answer.
        """
        with self._lock:
            if self._class is None:
                self._class = _class_of(self._connection())
        return self._class()

    def __repr__(self) -> str:
        return f"OpenRewardTasks({self._name!r})"

    def _connection(self) -> Connection:
        if ":" not in self._name:
            return Connection(self._name, url=self._url, **self._options)
        name = self._name.rpartition(":")[2].lower()  # as its server then calls it
        return Connection(name, url=served(self._name), **self._options)


class OpenRewardEnvironment:
    """One environment; subclasses have the tools of the server as methods."""

    REQUIRES_OWN_THREAD = False

    _connection: ClassVar[Connection]

    def __init__(self) -> None:
        self._session: Any = None
        self._begin()
        self.done = True  # until a first reset there is nothing to play

    async def reset(
        self,
        seed: int = 0,
        index: int | None = None,
        split: str | None = None,
        task: dict[str, Any] | None = None,
        **row: Any,
    ) -> Shown:
        """Begin a task; returns its prompt.

        Args:
            seed: Which task, counted from the first one and on from there again.
            index: Its place in the split, in the stead of a seed.
            split: Another one than that of the world.
            task: A task itself, as the environment writes them, in the stead of both.
            row: Other columns of the row; not used.
        """
        await self.close()
        self._begin()
        return await io_thread().run(self._opened(seed, index, split, task))

    async def get_reward(self) -> float:
        """The sum of what the tools gave; 0 for nothing."""
        if self._fault is not None:
            raise self._fault
        return self.reward

    async def close(self) -> None:
        """End the session at the server."""
        session, self._session = self._session, None
        if session is not None:
            await io_thread().run(type(self)._connection.leave(session))

    def _begin(self) -> None:
        self.done = False
        self.won = False
        """Whether the reward is 1 or more."""
        self.reward = 0.0
        self.calls = 0
        self._fault: EnvironmentFault | None = None
        self._measure()

    async def _opened(
        self, seed: int, index: int | None, split: str | None, task: dict[str, Any] | None
    ) -> Shown:
        connection = type(self)._connection
        place = index
        if place is None:
            place = 0 if task is not None else place_of(seed, await connection.count(split))
        self._session = await connection.session(split=split, index=place, task=task)
        async with connection.answering():
            return shown(await self._session.get_messages("openai"))

    async def _call(self, name: str | None, arguments: dict[str, Any]) -> Shown:
        """Make a call; without a name, that of the tool which ends an episode with a message."""
        if self._session is None or self.done:
            raise ValueError("The episode is over.")
        try:
            output = await io_thread().run(self._answered(name, arguments))
        except EnvironmentFault as fault:
            self.done, self._fault = True, fault
            raise ValueError(str(fault)) from fault
        self.calls += 1
        self.reward += output.reward or 0.0
        self.done = bool(output.finished) or name is None
        self.won = self.reward >= 1.0
        self._measure()
        return shown([{"role": "tool", "content": [_block(block) for block in output.blocks]}])

    async def _answered(self, name: str | None, arguments: dict[str, Any]) -> Any:
        async with type(self)._connection.answering():
            if name is None:
                return await self._session.call_terminal_tool(arguments["text"])
            return await self._session.call_tool(name, arguments)

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {"win": float(self.won), "calls": float(self.calls)}


class Replying(OpenRewardEnvironment):
    """Where a message ends the episode, as in environments with a terminal tool."""

    async def reply(self, text: str) -> Shown:
        """Say what you have to say; it is the answer, and the end.

        Args:
            text: The answer.
        """
        return await self._call(None, {"text": text})


def _block(block: Any) -> dict[str, Any]:
    if block.type == "image":
        url = f"data:{block.mimeType};base64,{block.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": block.text}


def _class_of(connection: Connection) -> type[OpenRewardEnvironment]:
    tools, terminal = io_thread().call(_listed(connection))
    base = OpenRewardEnvironment if terminal is None else Replying
    taken = [name for name in dir(base) if name[0] != "_"]
    taken += ["done", "won", "reward", "reward_parts", "calls", "metrics"]
    specs = [
        ToolSpec(
            name=tool.name,
            description=tool.description or "",
            parameters=tool.input_schema or _NO_ARGUMENTS,
            returns={"type": "string"},
        )
        for tool in tools
    ]
    members: dict[str, Any] = {"__doc__": f"{connection.name}.", "_connection": connection}
    members |= calling_methods(specs, taken=taken)
    made = type("OpenRewardEnvironment", (base,), members)
    return cast("type[OpenRewardEnvironment]", made)


async def _listed(connection: Connection) -> tuple[list[Any], Any]:
    """The tools at the first task, and the one that a message stands for, if there is one."""
    try:
        await connection.open()
        session = await connection.session(split=None, index=0, task=None)
        try:
            async with connection.answering():
                return await session.list_tools(), await session.terminal_tool()
        finally:
            await connection.leave(session)
    except BaseException:
        await connection.close()
        raise
