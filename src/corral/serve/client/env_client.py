"""The client of an environment server: ``reset``, ``step``, ``state``, ``close``."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from corral.env.io_thread import io_thread
from corral.errors import UsageError
from corral.serve.client.address import address_of
from corral.serve.client.errors import ClientClosedError, ProtocolError
from corral.serve.client.launchers import DockerImage, Launcher, Space
from corral.serve.client.options import ClientOptions
from corral.serve.client.payloads import action_payload, typed
from corral.serve.client.session import Session

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepResult(Generic[ObsT]):
    """What ``reset`` and ``step`` give back."""

    observation: ObsT
    reward: bool | int | float | None = None
    done: bool = False
    metadata: Mapping[str, Any] | None = None


class EnvClient(Generic[ActT, ObsT, StateT]):
    """A session with an environment server, OpenEnv's or Corral's.

    In asynchronous code the methods are awaited; called where no event loop runs, they block and
    return their result. ``sync()`` gives a client that always blocks::

        async with EnvClient("http://127.0.0.1:8000") as env:
            result = await env.reset(seed=7)
            result = await env.step({"message": "hi"})
            print(result.observation, result.reward, result.done)

    Calls made at the same time run one after the other. Where the session is lost, every method but
    ``reset`` raises `SessionLostError`. Subclasses are typed by naming types, or by overriding the
    three methods below::

        class EchoEnv(EnvClient[EchoAction, EchoObservation, State]):
            action_type, observation_type, state_type = EchoAction, EchoObservation, State
    """

    action_type: ClassVar[type | None] = None
    observation_type: ClassVar[type | None] = None
    state_type: ClassVar[type | None] = None

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float = 60.0,
        max_message_size_mb: float = 100.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Launcher | None = None,
        mode: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        queue_timeout_s: float = 60.0,
        options: ClientOptions | None = None,
    ) -> None:
        """
        Args:
            base_url: Where the server is; or None, and ``provider`` starts it.
            provider: Starts the server at first use; ``close`` stops it.
            mode: ``simulation`` or ``production``; both are the same to a client.
            token: The server's token.
            queue_timeout_s: How long to wait for a free slot of a full server.
            options: All settings in one record, instead of the others.
        """
        if (base_url is None) == (provider is None):
            raise UsageError("Give base_url or provider: EnvClient('http://127.0.0.1:8000').")
        if mode not in (None, "simulation", "production"):
            raise UsageError(f"mode={mode!r} must be 'simulation' or 'production'.")
        self.options = options or ClientOptions(
            connect_timeout_s=connect_timeout_s,
            message_timeout_s=message_timeout_s,
            queue_timeout_s=queue_timeout_s,
            max_message_bytes=int(max_message_size_mb * 1024 * 1024),
            ping_interval_s=websocket_ping_interval_s,
            ping_timeout_s=websocket_ping_timeout_s,
            headers=dict(headers or {}),
            token=token,
        )
        self._holder = _Holder(base_url, provider, self.options)
        if base_url is not None:
            address_of(base_url)  # a wrong one is told here rather than at first use
        # A client that nobody refers to any more frees its slot.
        holder = self._holder
        self._finalizer = weakref.finalize(self, _let_go, holder)
        self._finalizer.atexit = False

    @classmethod
    def from_docker_image(cls, image: str, provider: Launcher | None = None, **start: Any) -> Self:
        """A client of a container that is started at first use and removed by ``close``.

        Args:
            start: Options of `DockerImage` (``env_vars``, ``port``, ``ready_timeout_s``, ...) and
                of the client.
        """
        launched, own = _split(start, DockerImage)
        return cls(provider=provider or DockerImage(image, **launched), **own)

    @classmethod
    def from_env(
        cls, repo_id: str, use_docker: bool = True, provider: Launcher | None = None, **start: Any
    ) -> Self:
        """A client of a Space: of its image, run here, or of the hosted Space itself.

        Args:
            repo_id: ``owner/name``.
            use_docker: Whether to run the Space's image in Docker here.
            start: Options of `DockerImage` and of the client; ``tag`` chooses the image.
        """
        space = Space(repo_id)
        if provider is None and use_docker:
            tag = start.pop("tag", "latest")
            launched, own = _split(start, DockerImage)
            return cls(provider=DockerImage(space.image(tag), **launched), **own)
        return cls(provider=provider or space, **start)

    # What a subclass may override.

    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """The JSON object that a step carries."""
        return action_payload(action, self.action_type)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """A result from the answer to ``reset`` or ``step``."""
        observation: Any = payload.get("observation", {})
        reward, is_done = payload.get("reward"), bool(payload.get("done", False))
        if self.observation_type is not None and isinstance(observation, Mapping):
            fields = cast("Mapping[str, Any]", observation)
            observation = typed(self.observation_type, fields, reward=reward, done=is_done)
        return StepResult(observation, reward, is_done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> StateT:
        """The state from the answer to ``state``."""
        if self.state_type is not None:
            return typed(self.state_type, payload)
        return cast("StateT", payload)

    # The life of a session.

    def connect(self) -> Awaitable[Self]:
        """Open the connection; ``reset`` does that, too."""

        async def work() -> None:
            await (await self._holder.session()).connect()

        return self._do(work, lambda _: self)

    def reset(self, **kwargs: Any) -> Awaitable[StepResult[ObsT]]:
        """Start an episode, in a new session if the last one is lost."""
        return self._ask("reset", kwargs, self._parsed_result)

    def step(self, action: ActT, *, timeout_s: float | None = None) -> Awaitable[StepResult[ObsT]]:
        """Do one action.

        Args:
            timeout_s: How long it may take; a Corral server then stops it.
        """
        payload = self._step_payload(action)
        return self._ask("step", payload, self._parsed_result, timeout_s=timeout_s)

    def state(self) -> Awaitable[StateT]:
        """What the environment shows of its state."""

        def parse(data: Any) -> StateT:
            return self._parse_state(_an_object(data))

        return self._ask("state", None, parse)

    def disconnect(self) -> Awaitable[None]:
        """End the session and free its slot; ``reset`` opens another one."""
        return self._do(self._holder.disconnect, lambda nothing: nothing)

    def close(self) -> Awaitable[None]:
        """End the session for good, and stop the server if this client started it."""
        return self._do(self._holder.close, lambda nothing: nothing)

    def new_session(self) -> Self:
        """Another client of the same server, with a session of its own."""
        if self._holder.base_url is None:
            raise UsageError("The server is not started yet: connect() or reset() first.")
        return type(self)(base_url=self._holder.base_url, options=self.options)

    def sync(self) -> "SyncEnvClient[ActT, ObsT, StateT]":
        """The same client with methods that block, also inside a running event loop."""
        return SyncEnvClient(self)

    @property
    def is_resumable(self) -> bool:
        """Whether the present session survives a lost connection."""
        return self._holder.is_resumable

    def __await__(self) -> Generator[Any, None, Self]:
        return self._connected().__await__()

    async def __aenter__(self) -> Self:
        return await self._connected()

    async def __aexit__(self, *_: object) -> None:
        await io_thread().run(self._holder.close())

    def __enter__(self) -> Self:
        self.sync().connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.sync().close()

    async def _connected(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await io_thread().run(self._holder.close())  # whatever was started is stopped again
            raise
        return self

    def _parsed_result(self, data: Any) -> StepResult[ObsT]:
        return self._parse_result(_an_object(data))

    def _ask(
        self,
        kind: str,
        data: Mapping[str, Any] | None,
        parse: Callable[[Any], T],
        *,
        timeout_s: float | None = None,
    ) -> Awaitable[T]:
        async def work() -> Any:
            session = await self._holder.session()
            return await session.request(kind, data, timeout_s=timeout_s)

        return self._do(work, parse)

    def _do(
        self, work: Callable[[], Coroutine[Any, Any, Any]], parse: Callable[[Any], T]
    ) -> Awaitable[T]:
        """Have ``work`` done on the clients' loop: awaitable in a running loop, else blocking."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return cast("Awaitable[T]", parse(io_thread().call(work())))
        return self._later(work, parse)

    async def _later(
        self, work: Callable[[], Coroutine[Any, Any, Any]], parse: Callable[[Any], T]
    ) -> T:
        return parse(await io_thread().run(work()))


class SyncEnvClient(Generic[ActT, ObsT, StateT]):
    """A client whose methods block; made by ``EnvClient(...).sync()``."""

    def __init__(self, client: EnvClient[ActT, ObsT, StateT]) -> None:
        self.client = client

    def connect(self) -> Self:
        """Open the connection."""
        _blocking(lambda: self.client.connect())
        return self

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Start an episode."""
        return _blocking(lambda: self.client.reset(**kwargs))

    def step(self, action: ActT, *, timeout_s: float | None = None) -> StepResult[ObsT]:
        """Do one action."""
        return _blocking(lambda: self.client.step(action, timeout_s=timeout_s))

    def state(self) -> StateT:
        """What the environment shows of its state."""
        return _blocking(lambda: self.client.state())

    def disconnect(self) -> None:
        """End the session and free its slot."""
        _blocking(lambda: self.client.disconnect())

    def close(self) -> None:
        """End the session for good."""
        _blocking(lambda: self.client.close())

    def new_session(self) -> "SyncEnvClient[ActT, ObsT, StateT]":
        """Another client of the same server."""
        return self.client.new_session().sync()

    def __enter__(self) -> Self:
        try:
            return self.connect()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


class _Holder:
    """What belongs to a client but must outlive it until it is freed: session and server."""

    def __init__(
        self, base_url: str | None, launcher: Launcher | None, options: ClientOptions
    ) -> None:
        self.base_url = base_url
        self._launcher = launcher
        self._options = options
        self._session: Session | None = None
        self._is_closed = False
        self._starting = asyncio.Lock()

    @property
    def is_resumable(self) -> bool:
        return self._session is not None and self._session.is_resumable

    async def session(self) -> Session:
        if self._is_closed:
            raise ClientClosedError("This client was closed. Make another one.")
        if self._session is None:
            async with self._starting:
                if self.base_url is None:
                    assert self._launcher is not None
                    io_thread().close_at_exit(self)
                    self.base_url = await self._launcher.start()
                if self._session is None:
                    self._session = Session(address_of(self.base_url), self._options)
                    io_thread().close_at_exit(self)
        return self._session

    async def disconnect(self) -> None:
        if self._session is not None:
            await self._session.disconnect()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            if self._launcher is not None:
                await self._launcher.stop()


def _let_go(holder: _Holder) -> None:
    if holder._session is not None or holder._launcher is not None:  # else nothing was opened
        io_thread().start(holder.close)


def _blocking(call: Callable[[], Awaitable[T]]) -> T:
    """Run one of a client's calls to its end, whether or not an event loop runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return cast("T", call())  # blocks by itself
    return io_thread().call(_awaited(call()))


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _an_object(data: Any) -> dict[str, Any]:
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    raise ProtocolError(f"The server's answer has {type(data).__name__} where an object belongs.")


def _split(options: dict[str, Any], launcher: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the launcher, and those of the client."""
    known = set(launcher.__init__.__annotations__)
    return (
        {name: value for name, value in options.items() if name in known},
        {name: value for name, value in options.items() if name not in known},
    )
