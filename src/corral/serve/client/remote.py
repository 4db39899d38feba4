"""A served world as an environment: its tools are methods, its episodes are sessions."""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from corral.env.content import are_content_blocks
from corral.env.contract import seen_nowhere
from corral.env.signatures import method_of
from corral.errors import InfrastructureFault
from corral.serve.client.address import address_of
from corral.serve.client.env_client import EnvClient, StepResult
from corral.serve.client.errors import ToolCallError
from corral.serve.client.options import ClientOptions
from corral.serve.client.remote_tools import RemoteTool, RemoteWorld, examine

_NOT_SHOWN = frozenset({"metadata", "reward", "done"})

Show = Callable[[Mapping[str, Any]], "str | list[Any] | None"]
"""From an observation to what the model reads."""


class RemoteEnvironment:
    """A factory of environments that live on a server, OpenEnv's or Corral's.

    ::

        GRPOTrainer(..., environment_factory=RemoteEnvironment("http://127.0.0.1:8000"))

    The served tools are the tools; a server with a typed action gives one tool per value of the
    field that chooses (``type``, ``action``, ...), or else one tool named after the action. Each
    episode is a session of its own: ``reset`` opens it, and asking for the reward ends it and frees
    its slot. A full server is waited for. A lost session is an infrastructure fault.
    """

    REQUIRES_OWN_THREAD = False
    """All it does is asynchronous; a thread for each session would sleep."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        message_timeout_s: float = 300.0,
        queue_timeout_s: float = 600.0,
        show: Show | None = None,
        options: ClientOptions | None = None,
    ) -> None:
        """
        Args:
            message_timeout_s: How long a call may take.
            queue_timeout_s: How long to wait for a free slot.
            show: What of an observation the model reads, for servers with a typed action. Without
                it: the text if the observation is one text, else all of it as JSON.
            options: All settings in one record, instead of the others.
        """
        self.base_url = base_url
        self._address = address_of(base_url)
        self._options = options or ClientOptions(
            message_timeout_s=message_timeout_s,
            queue_timeout_s=queue_timeout_s,
            headers=dict(headers or {}),
            token=token,
        )
        self._show = show or shown
        self._class: type[ServedWorld] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> "ServedWorld":
        """Make an environment; the first one asks the server what its world offers."""
        with self._lock:
            if self._class is None:
                world = examine(self._address, self._options)
                self._class = _class_of(world, self.base_url, self._options, self._show)
        return self._class()

    def __repr__(self) -> str:
        return f"RemoteEnvironment({str(self._address)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_class": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class ServedWorld:
    """One environment on a server; subclasses have the world's tools as methods."""

    _world: ClassVar[RemoteWorld]
    _base_url: ClassVar[str]
    _options: ClassVar[ClientOptions]
    _show: ClassVar[Show]

    def __init__(self) -> None:
        self._client: EnvClient[Any, Any, Any] = EnvClient(self._base_url, options=self._options)
        self._begin()

    def __getattr__(self, name: str) -> NoReturn:
        raise seen_nowhere(self, name)

    async def reset(self, **row: Any) -> str | list[Any] | None:
        """Start an episode in a session; the columns of the row are the server's to read."""
        self._begin()
        try:
            result = await self._client.reset(**row)
        except InfrastructureFault as fault:
            self._fault = fault
            raise
        self._take(result)
        if self._world.style == "corral":
            return result.observation.get("result")
        return type(self)._show(result.observation)

    async def get_reward(self) -> float | None:
        """The reward of the episode, whose session ends with it.

        That of the world where it ends by itself, else the sum of what the steps gave.
        """
        if self._fault is not None:
            raise self._fault  # what was lost has no reward, and least of all 0
        if not self._is_scored:
            if self._world.style == "corral" and not self.done:
                self._take(await self._client.step({"type": "finish"}))
            self._is_scored = True
            await self._client.disconnect()
        if not self._rewards:
            return None
        return self._rewards[-1] if self._world.style == "corral" else sum(self._rewards)

    async def close(self) -> None:
        """End the session."""
        await self._client.close()

    def _begin(self) -> None:
        self.done = False
        self.metrics: dict[str, Any] = {}
        self.won = False
        """Whether the world says that the episode was won; it says so at the end."""
        self.reward_parts: dict[str, Any] = {}
        self._rewards: list[float] = []
        self._is_scored = False
        self._fault: InfrastructureFault | None = None

    async def _call(self, tool: RemoteTool, arguments: dict[str, Any]) -> str | list[Any]:
        action: dict[str, Any] = {**tool.constants, **arguments}
        if self._world.style != "typed":
            action = {"type": "call_tool", "tool_name": tool.remote_name, "arguments": arguments}
        try:
            result = await self._client.step(action)
        except InfrastructureFault as fault:
            self._fault = fault
            raise
        self._take(result)
        if self._world.style == "typed":
            return type(self)._show(result.observation) or ""
        return _tool_result(result.observation)

    def _take(self, result: StepResult[Any]) -> None:
        self.done = result.done
        if result.reward is not None:
            self._rewards.append(float(result.reward))
        metadata = result.metadata or {}
        if isinstance(metadata.get("metrics"), Mapping):
            self.metrics = dict(metadata["metrics"])
        self.won = metadata.get("won") is True
        if isinstance(metadata.get("reward_parts"), Mapping):
            self.reward_parts = dict(metadata["reward_parts"])


def shown(observation: Any) -> str | None:
    """An observation as text: itself if it is one text, else JSON without its bookkeeping."""
    if not isinstance(observation, Mapping):
        return None if observation is None else str(observation)
    fields = {name: value for name, value in observation.items() if name not in _NOT_SHOWN}
    if not fields:
        return None
    (first, *others) = fields.values()
    if not others and isinstance(first, str):
        return first
    return json.dumps(fields, ensure_ascii=False)


def _tool_result(observation: Mapping[str, Any]) -> str | list[Any]:
    """What a tool answered, as in-process.

    Raises:
        ToolCallError: It raised; the text is for the model.
        InfrastructureFault: The server did not reach it.
    """
    error = observation.get("error")
    if isinstance(error, Mapping):
        message = str(error.get("message"))
        if error.get("error_type") == "transport_error":
            raise InfrastructureFault(message)
        raise ToolCallError(message)
    result = observation.get("result")
    if isinstance(result, str):
        return result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        result = result["content"]
        texts = [block.get("text") for block in result if block.get("type") == "text"]
        if len(texts) == len(result):
            return "\n".join(map(str, texts))
    if are_content_blocks(result):
        return result
    return json.dumps(result, ensure_ascii=False)


def _class_of(
    world: RemoteWorld, base_url: str, options: ClientOptions, show: Show
) -> type[ServedWorld]:
    members: dict[str, Any] = {
        "__doc__": f"{world.name} on {address_of(base_url)}.",
        "_world": world,
        "_base_url": base_url,
        "_options": options,
        "_show": staticmethod(show),
    }
    for tool in world.tools:
        members[tool.spec.name] = _method(tool)
    return type(world.name, (ServedWorld,), members)


def _method(tool: RemoteTool) -> Callable[..., Any]:
    async def call(self: ServedWorld, arguments: dict[str, Any]) -> Any:
        return await self._call(tool, arguments)

    return method_of(tool.spec, call)
