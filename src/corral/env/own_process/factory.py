"""A factory of environments in processes of their own, and what stands for them here."""

import builtins
import inspect
import sys
import weakref
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, ClassVar, NoReturn, cast

from pydantic_core import to_jsonable_python

from corral.env.content import for_json
from corral.env.contract import seen_nowhere
from corral.env.own_process.kept import Kept
from corral.env.own_process.started import Started
from corral.env.tools import discover_tools
from corral.errors import InfrastructureFault, UsageError


class CallTimeoutError(InfrastructureFault, TimeoutError):
    """A call took too long, and the environment's process was ended."""


class ProcessLostError(InfrastructureFault, RuntimeError):
    """The environment's process has ended; only another environment can be played."""


class OwnProcess:
    """A factory of environments that each live in a process of their own.

    ::

        GRPOTrainer(..., environment_factory=OwnProcess(Browser, call_timeout_s=30))

    What hangs longer than ``call_timeout_s`` is ended with everything it started, and is an
    infrastructure fault, as is a process that crashes: the episode is played again elsewhere. The
    process starts with the first ``reset``, and ends with ``close`` or with this process. What
    tools return is text or content blocks that JSON can hold.
    """

    def __init__(
        self,
        environment_class: type,
        *,
        call_timeout_s: float = 60.0,
        reset_timeout_s: float = 120.0,
        kept_s: float = 0.0,
    ) -> None:
        """
        Args:
            environment_class: A class at the top of a module, which the process imports.
            call_timeout_s: How long a tool call may take.
            reset_timeout_s: How long starting the process, and each ``reset`` in it, may take.
            kept_s: How long the process of an environment that was closed waits, with the
                environment in it as it is, for the next one that is made: for what takes long to
                start. One that has failed does not wait.
        """
        self._spec = _spec_of(environment_class)
        self._environment_class = environment_class
        self._call_timeout_s = call_timeout_s
        self._reset_timeout_s = reset_timeout_s
        self._kept_s = kept_s

    def __call__(self) -> Any:
        """Make an environment."""
        return self._class()

    @cached_property
    def _class(self) -> type["ProcessEnvironment"]:
        return _class_of(
            self._environment_class,
            self._spec,
            self._call_timeout_s,
            self._reset_timeout_s,
            Kept(self._kept_s),
        )

    def __repr__(self) -> str:
        return f"OwnProcess({self._spec!r})"


class ProcessEnvironment:
    """An environment in another process; subclasses have its tools as methods."""

    _spec: ClassVar[str]
    _call_timeout_s: ClassVar[float]
    _reset_timeout_s: ClassVar[float]
    _kept: ClassVar[Kept]

    def __init__(self) -> None:
        self.done = False
        self.metrics: dict[str, float] = {}
        self.reward_parts: dict[str, float | None] = {}
        self._started: Started | None = None
        self._end: weakref.finalize[..., ProcessEnvironment] | None = None
        self._loss: str | None = None
        """Why there is no process any more."""
        self._has_failed = False
        """Whether it, or something beneath it, failed: not one for others to go on with."""

    def __getattr__(self, name: str) -> NoReturn:
        raise seen_nowhere(self, name)

    def reset(self, **row: Any) -> Any:
        """Start an episode, and before the first one the process."""
        if self._started is None and self._loss is None:
            self._started = self._kept.take() or Started.start(self._spec)
            # Whoever forgets to close leaves no process behind.
            self._end = weakref.finalize(self, self._started.end)
            self._end.atexit = False  # the pipe to it closes then, which is enough
        return self._ask("reset", row, self._reset_timeout_s)

    def close(self) -> None:
        """Close the environment, and end its process and all that it started, or keep it."""
        started, self._started = self._started, None
        self._loss = self._loss or "The environment was closed."
        if started is None or self._end is None:
            return
        if not self._has_failed and self._kept.give(started):
            self._end.detach()  # whoever takes it ends it
            return
        started.say_goodbye()
        self._end()

    def _get_reward(self) -> float | None:
        return self._ask("get_reward", {}, self._call_timeout_s)

    def _ask(self, name: str, arguments: dict[str, Any], timeout_s: float) -> Any:
        if self._started is None:
            raise ProcessLostError(self._loss or f"{self._spec}: call reset() first.")
        try:
            answer = self._started.ask(
                name, to_jsonable_python(for_json(arguments)), timeout_s=timeout_s
            )
        except TimeoutError:
            why = self._lose(f"{name} took longer than {timeout_s:g} s; its process was ended.")
            raise CallTimeoutError(why) from None
        except EOFError:
            raise ProcessLostError(self._lose(f"its process ended during {name}.")) from None
        return self._read(name, answer)

    def _read(self, name: str, answer: dict[str, Any]) -> Any:
        for shown in ("done", "metrics", "reward_parts", "won"):
            if shown in answer:
                setattr(self, shown, answer[shown])
        self._has_failed |= "infrastructure" in answer or "raised" in answer
        if "infrastructure" in answer:
            raise InfrastructureFault(answer["infrastructure"])
        if "raised" in answer:
            raise _as_raised(*answer["raised"])
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["value"]

    def _lose(self, why: str) -> str:
        self._loss, self._started = f"{self._spec}: {why}", None
        if self._end is not None:
            self._end()
        return self._loss


def _spec_of(environment_class: type) -> str:
    module = sys.modules[environment_class.__module__]
    name = environment_class.__qualname__
    if module.__name__ == "__main__" or "<locals>" in name:
        raise UsageError(
            f"{name} is defined in {module.__name__}, where another process cannot import it. "
            "Put the class at the top of a module of its own."
        )
    if module.__spec__ is None or module.__name__.startswith("corral_file_"):
        return f"{inspect.getfile(environment_class)}:{name}"
    return f"{module.__name__}:{name}"


def _class_of(
    environment_class: type, spec: str, call_timeout_s: float, reset_timeout_s: float, kept: Kept
) -> type[ProcessEnvironment]:
    members: dict[str, Any] = {
        "__doc__": environment_class.__doc__,
        "__module__": environment_class.__module__,
        "_spec": spec,
        "_call_timeout_s": call_timeout_s,
        "_reset_timeout_s": reset_timeout_s,
        "_kept": kept,
        "REPLAYABLE": getattr(environment_class, "REPLAYABLE", False),
    }
    for tool in discover_tools(environment_class):
        function = inspect.getattr_static(environment_class, tool.function_name)
        is_static = isinstance(function, staticmethod)
        members[tool.function_name] = function if is_static else _method(function, call_timeout_s)
    if hasattr(environment_class, "get_reward"):
        members["get_reward"] = ProcessEnvironment._get_reward  # pyright: ignore[reportPrivateUsage]
    members["reset"] = _reset_like(cast("Any", environment_class).reset)
    return type(environment_class.__name__, (ProcessEnvironment,), members)


def _method(function: Callable[..., Any], timeout_s: float) -> Callable[..., Any]:
    _, *names = inspect.signature(function).parameters

    @wraps(function)
    def call(self: ProcessEnvironment, *values: Any, **arguments: Any) -> Any:
        given = dict(zip(names, values, strict=False)) | arguments
        return self._ask(function.__name__, given, timeout_s)  # pyright: ignore[reportPrivateUsage]

    return call


def _reset_like(reset: Callable[..., Any]) -> Callable[..., Any]:
    """The inherited ``reset`` with the signature that says which columns it takes."""

    @wraps(reset)
    def start(self: ProcessEnvironment, **row: Any) -> Any:
        return ProcessEnvironment.reset(self, **row)

    return start


def _as_raised(kind: str, text: str) -> Exception:
    """An exception of the kind that was raised there, where it is one of Python's own."""
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        return found(text)
    return RuntimeError(f"{kind}: {text}")
