"""The life of an environment: prepared once, constructed as needed, reset, scored, closed."""

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from corral.env.calls import ToolSet, tools_of
from corral.env.content import are_content_blocks, with_blocks
from corral.env.contract import CLOSE, Observation
from corral.env.introspection import as_float, required_parameters, shown
from corral.env.own_reward import reward_columns
from corral.env.threads import DaemonThreads, environment_threads, run_user_code
from corral.errors import (
    EnvironmentFault,
    InfrastructureFault,
    UsageError,
    environment_boundary,
)

logger = logging.getLogger(__name__)

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnvironmentKind:
    """One environment factory, examined: everything that is the same for all its instances."""

    name: str
    """The name of the class; the environment's own reward is called after it."""
    factory: Callable[[], Any]
    cls: type
    tools: ToolSet
    """Plain functions the run adds, then the environment's own."""
    reward_columns: tuple[str, ...]
    """What its reward is called: its parts, or its class; empty without ``get_reward``."""
    reset_signature: inspect.Signature | None = None
    """What ``reset`` takes; None where that cannot be seen."""
    _unused: "list[Home]" = field(default_factory=list["Home"], repr=False)

    @property
    def has_reward(self) -> bool:
        """Whether it defines ``get_reward``."""
        return bool(self.reward_columns)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Check that ``reset`` takes rows with these columns; see :func:`check_reset_columns`."""
        _check_columns(self.name, self.reset_signature, columns)

    def construct(self) -> "Home":
        """An instance nobody uses yet, in its thread: the examined one first, then new ones.

        Each call beyond the first calls the factory exactly once.
        """
        try:
            return self._unused.pop()
        except IndexError:
            return _construct(self.factory, f"{self.name}()")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Home:
    """An environment and the thread in which its synchronous code runs, constructor included.

    Browsers, SQLite and OpenGL must be called from the thread that made them.
    """

    instance: Any
    thread: DaemonThreads

    def free_thread(self) -> Executor | None:
        """The thread; None, which stands for the shared ones, while a call holds it.

        Behind a call that hangs, nothing would ever be scored or closed.
        """
        return None if self.thread.is_busy else self.thread

    def leave(self) -> None:
        """Let the thread end; the environment is closed or given up."""
        if self.thread is not environment_threads():
            self.thread.shutdown(wait=False)


def prepare(
    factory: Callable[[], Any], *, standalone: Sequence[Callable[..., Any]] = ()
) -> EnvironmentKind:
    """Construct one instance and examine it: ``reset``, tools, reward.

    Args:
        factory: A class, or anything else callable without arguments that makes an environment.
        standalone: Plain functions offered as tools next to the environment's own.

    Raises:
        UsageError: The factory makes no environment; the message names the remedy.
        ToolDefinitionError: A method cannot be a tool.
    """
    return examine(factory, first_home(factory), standalone=standalone)


def first_home(factory: Callable[[], Any]) -> Home:
    """The first instance that a factory makes, in its thread.

    Raises:
        UsageError: The factory cannot be called without arguments.
        EnvironmentFault: It raised.
    """
    what = _factory_name(factory)
    _check_factory(factory, what)
    return _construct(factory, what + "()")


def examine(
    factory: Callable[[], Any], home: Home, *, standalone: Sequence[Callable[..., Any]] = ()
) -> EnvironmentKind:
    """What :func:`prepare` makes, of an instance that is there already."""
    instance = home.instance
    cls = cast("type[Any]", type(instance))
    name = cls.__name__
    if not callable(getattr(instance, "reset", None)):
        raise UsageError(
            f"{name} must define a callable `reset`. Add: def reset(self, **kwargs) -> str | None"
        )
    return EnvironmentKind(
        name=name,
        factory=factory,
        cls=cls,
        tools=tools_of(standalone, cls),
        reward_columns=reward_columns(instance, name),
        reset_signature=_reset_signature(instance),
        _unused=[home],
    )


def check_reset_columns(environment: object, columns: Iterable[str]) -> None:
    """Check that ``reset`` takes a row with these columns.

    Raises:
        UsageError: It does not; the message names column, class and remedy.
    """
    _check_columns(type(environment).__name__, _reset_signature(environment), columns)


def _reset_signature(environment: object) -> inspect.Signature | None:
    try:
        return inspect.signature(cast("Any", environment).reset)
    except (TypeError, ValueError):
        return None  # written in C or otherwise opaque: calling it will tell


def _check_columns(name: str, signature: inspect.Signature | None, columns: Iterable[str]) -> None:
    if signature is None:
        return
    parameters = signature.parameters.values()
    given = list(columns)
    accepted = [parameter.name for parameter in parameters if parameter.kind in _NAMED]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    foreign = [column for column in given if column not in accepted]
    if foreign and not takes_any:
        listed = ", ".join(repr(column) for column in foreign)
        arguments = ", ".join(["self", *accepted, "**kwargs"])
        raise UsageError(
            f"{name}.reset does not take the dataset column{'s' * (len(foreign) > 1)} {listed}. "
            f"Add the parameter or **kwargs, such as: def reset({arguments})"
        )
    for parameter in parameters:
        is_required = parameter.default is inspect.Parameter.empty and parameter.kind in (
            *_NAMED,
            inspect.Parameter.POSITIONAL_ONLY,
        )
        if is_required and parameter.name not in given:
            raise UsageError(
                f"{name}.reset needs {parameter.name!r}, which the dataset row does not have "
                f"(its columns: {', '.join(given) or 'none'}). Add the column, or a default: "
                f"{parameter.name}=None"
            )


async def call_reset(
    environment: object, row: Mapping[str, Any], *, executor: Executor | None = None
) -> Observation:
    """Start an episode: ``reset(**row)``, and what it has to add to the prompt.

    Raises:
        UsageError: ``reset`` does not take this row.
        EnvironmentFault: ``reset`` raised, or returned what is no observation.
        InfrastructureFault: What it stands on failed.
    """
    check_reset_columns(environment, row)
    what = f"{type(environment).__name__}.reset"
    with environment_boundary(what):
        # Members of a group play one row at the same time: what one changes, no other may see.
        own = deepcopy(dict(row))
        value = await run_user_code(cast("Any", environment).reset, own, executor=executor)
        value = with_blocks(value)
    if value is None or value == [] or isinstance(value, str) or are_content_blocks(value):
        return cast("Observation", value)
    raise EnvironmentFault(
        f"{what} returned a {type(value).__name__} ({shown(value)}). Return the text to show the "
        "model, a list of content blocks, or None."
    )


def is_done(environment: object) -> bool:
    """Whether the environment says that its episode is over (its ``done``, if it has one).

    A ``done`` that is a method is a tool, and says nothing.
    """
    with environment_boundary(f"{type(environment).__name__}.done"):
        value = getattr(environment, "done", False)
        return False if callable(value) else bool(value)


def metrics(environment: object) -> dict[str, float]:
    """The finite numbers in the environment's ``metrics``; everything else there is its own."""
    with environment_boundary(f"{type(environment).__name__}.metrics"):
        values = getattr(environment, "metrics", None)
        if not isinstance(values, Mapping):
            return {}
        numbers = {
            str(name): as_float(value)
            for name, value in cast("Mapping[object, object]", values).items()
        }
    return {
        name: number
        for name, number in numbers.items()
        if number is not None and math.isfinite(number)
    }


async def close(environment: object, *, executor: Executor | None = None) -> None:
    """Let the environment free what it holds; a failure to do so is logged, not raised."""
    function = getattr(environment, CLOSE, None)
    if not callable(function) or required_parameters(function):
        return
    try:
        with environment_boundary(f"{type(environment).__name__}.close"):
            await run_user_code(function, executor=executor)
    except (EnvironmentFault, InfrastructureFault) as fault:
        logger.warning("%s", fault)


def _construct(factory: Callable[[], Any], what: str) -> Home:
    is_own = requires_own_thread(factory)
    thread = DaemonThreads(1) if is_own else environment_threads()
    with environment_boundary(what):
        try:
            return Home(instance=thread.submit(factory).result(), thread=thread)
        except BaseException:
            if is_own:
                thread.shutdown()
            raise


def requires_own_thread(factory: object) -> bool:
    """Whether a class, or another factory, wants each instance called from one thread only."""
    return bool(getattr(factory, "REQUIRES_OWN_THREAD", True))


def _factory_name(factory: object) -> str:
    named = getattr(factory, "func", factory)  # a partial is called what it wraps
    return getattr(named, "__name__", type(named).__name__)


def _check_factory(factory: object, what: str) -> None:
    if not callable(factory):
        raise UsageError(
            f"The environment factory is {shown(factory)}, which cannot be called. Give the class "
            f"{type(factory).__name__} itself, not an instance: each episode needs its own."
        )
    if inspect.iscoroutinefunction(factory):
        raise UsageError(
            f"The environment factory {what} is async. Make the instance in a plain function, and "
            "connect in `async def reset`."
        )
    missing = required_parameters(factory)
    if missing:
        values = ", ".join(f"{name}=..." for name in missing)
        raise UsageError(
            f"The environment factory {what} needs {', '.join(missing)}, but is called without "
            f"arguments. Give: functools.partial({what}, {values})"
        )
