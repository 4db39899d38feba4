"""A class whose methods are tools as a `World`: its tools are MCP tools, and a typed action.

An action is one of::

    {"type": "call_tool", "tool_name": "guess", "arguments": {"n": 7}}
    {"type": "list_tools"}
    {"type": "finish"}

``finish`` is for whoever runs the episode: it ends it and gives the reward of a world that has no
end of its own. Before the end there is no reward, and the state says no more than how far the
episode is: what the class keeps on ``self`` never leaves the server.
"""

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from pydantic_core import to_jsonable_python

from corral.env.calls import ToolSet
from corral.env.content import for_json, with_blocks
from corral.env.introspection import required_parameters
from corral.env.lifecycle import is_done, metrics
from corral.env.own_reward import reward_parts
from corral.errors import EnvironmentFault
from corral.serve.calling import accepted, checked_reward, close_in
from corral.serve.faults import InvalidRequest, ServeFault, execution_fault, factory_fault, problem
from corral.serve.shared_threads import SessionThread, start_thread
from corral.serve.tool_calls import CallOutcome, InstanceCalls
from corral.serve.world import Observed, ToolAnswer, ToolDescription

TaskSource = Callable[[int, int], list[dict[str, Any]]]
_ENVELOPE = ("seed", "episode_id")
"""What any OpenEnv client may send with a reset, whether the class takes it or not."""
_SEEDS = 2**31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolKind:
    """One class of tool methods, examined."""

    name: str
    description: str
    version: str
    factory: Callable[[], Any]
    tool_set: ToolSet
    is_async: bool
    """Whether any of its members is, so that its thread needs an event loop."""
    has_close: bool
    action_schema: dict[str, Any]
    observation_schema: dict[str, Any]
    state_schema: dict[str, Any]
    reset_schema: dict[str, Any]
    tools: tuple[ToolDescription, ...] | None
    is_concurrent: bool
    is_replayable: bool
    has_own_threads: bool = True
    """Whether an instance must be called from the same thread always."""
    tasks: TaskSource | None = None
    """Gives a reset without its columns a row to play."""
    is_debug: bool = False

    async def construct(self) -> "ToolWorld":
        """Make an environment in a thread of its own.

        Raises:
            ServeFault: The constructor raised.
        """
        thread = start_thread(self.name, is_own=self.has_own_threads)
        try:
            instance = await thread.submit(self.factory)
        except BaseException as error:
            thread.stop()
            if isinstance(error, Exception):
                raise factory_fault(self.name, error) from error
            raise
        return ToolWorld(self, instance, thread)


class ToolWorld:
    """The environment of one session."""

    def __init__(self, kind: ToolKind, instance: Any, thread: SessionThread) -> None:
        self._kind = kind
        self._instance = instance
        self._thread = thread
        self._calls = InstanceCalls(kind.tool_set, instance, is_async=kind.is_async)
        self._episode_id: str | None = None
        self._step_count = 0
        self._is_done = False

    async def reset(self, arguments: Mapping[str, Any]) -> Observed:
        """Start an episode with the given columns, or with a row of the world's own tasks."""
        row, prompt = self._row(arguments)

        async def run() -> Observed:
            shown = for_json(with_blocks(await self._calls.settle(self._instance.reset(**row))))
            if shown is not None and not isinstance(shown, str | list):
                raise EnvironmentFault(
                    f"reset returned a {type(shown).__name__}. Return the text to show the model, "
                    "a list of content blocks, or None."
                )
            return await self._observed({**prompt, "result": shown})

        observed = await self._run("reset", run)
        episode_id = arguments.get("episode_id")
        self._episode_id = episode_id if isinstance(episode_id, str) else uuid4().hex
        self._step_count = 0
        self._is_done = observed.done
        return observed

    async def step(self, action: Any, *, timeout_s: float | None = None) -> Observed:
        """Do one of the three kinds of action."""
        kind, name, arguments = _read_action(action)
        if kind == "list_tools":
            return self._listing()
        if kind == "finish":
            observed = await self._run("finish", partial(self._observed, {}, is_over=True))
        else:
            observed = await self._run("step", partial(self._play, name, arguments))
            self._step_count += 1
        self._is_done = observed.done
        return observed

    async def state(self) -> dict[str, Any]:
        """How far the episode is; nothing of what the class keeps."""
        return {
            "episode_id": self._episode_id,
            "step_count": self._step_count,
            "done": self._is_done,
        }

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool without a step: no reward, and nothing is counted."""
        outcome: CallOutcome = await self._run(
            f"tool {name}", partial(self._calls.call, name, arguments)
        )
        content = outcome.content
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        is_error = outcome.error_type is not None
        return ToolAnswer(
            content=to_jsonable_python(blocks, fallback=str),
            data={"error": content} if is_error else _as_json(outcome.value),
            is_error=is_error,
        )

    async def list_tools(self) -> tuple[ToolDescription, ...]:
        """The tools, which are the same in every session."""
        return self._kind.tools or ()

    async def close(self) -> None:
        """Close the environment in its thread, and end the thread."""

        async def run() -> None:
            if self._kind.has_close:
                await self._calls.settle(self._instance.close())

        try:
            await close_in(self._thread, self._calls.job(run))
        except Exception as error:  # noqa: BLE001 - logged; there is nobody to tell
            self._fault("close", error)

    def abandon(self) -> None:
        """Cancel the coroutine under way, if it is one."""
        self._thread.cancel_tasks()

    def _row(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What ``reset`` is called with, and what of it the player is told."""
        reset = self._instance.reset
        known = accepted(reset, arguments)
        foreign = [name for name in arguments if name not in known and name not in _ENVELOPE]
        missing = [name for name in required_parameters(reset) if name not in known]
        prompt: dict[str, Any] = {}
        if missing and self._kind.tasks is not None:
            seed = arguments.get("seed")
            (row,) = self._kind.tasks(
                seed % _SEEDS if isinstance(seed, int) else secrets.randbelow(_SEEDS), 1
            )
            known = accepted(reset, row) | known
            prompt = {"prompt": row["prompt"]} if "prompt" in row else {}
            missing = [name for name in missing if name not in known]
        problems = [
            problem("extra_forbidden", ["data", name], "reset does not take this")
            for name in foreign
        ] + [problem("missing", ["data", name], "Field required") for name in missing]
        if problems:
            raise InvalidRequest(problems)
        return known, prompt

    async def _play(self, name: str, arguments: Mapping[str, Any]) -> Observed:
        outcome = await self._calls.call(name, arguments)
        error = outcome.error_type and {
            "error_type": outcome.error_type,
            "message": outcome.content,
        }
        result = None if error else outcome.content
        return await self._observed({"tool_name": name, "result": result, "error": error})

    async def _observed(self, fields: dict[str, Any], *, is_over: bool = False) -> Observed:
        """The observation with what may be known now; in the environment's thread."""
        is_over = is_over or is_done(self._instance)
        reward = None
        metadata: dict[str, Any] = {}
        if is_over:
            get_reward = getattr(self._instance, "get_reward", None)
            if get_reward is not None:
                value = await self._calls.settle(get_reward())
                reward = checked_reward(value, f"{self._kind.name}.get_reward")
            metadata = _told_at_the_end(self._instance)
        plain = to_jsonable_python({**fields, "metadata": metadata})
        return Observed(observation=plain, reward=reward, done=is_over, metadata=metadata)

    def _listing(self) -> Observed:
        listed = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            }
            for tool in self._kind.tools or ()
        ]
        return Observed(
            observation={"tools": listed, "metadata": {}}, reward=None, done=self._is_done
        )

    async def _run(self, what: str, make: Callable[[], Any]) -> Any:
        try:
            return await self._thread.submit(self._calls.job(make))
        except Exception as error:
            raise self._fault(what, error) from error

    def _fault(self, what: str, error: Exception) -> ServeFault:
        return execution_fault(f"{self._kind.name}.{what}", error, is_debug=self._kind.is_debug)


def _told_at_the_end(instance: Any) -> dict[str, Any]:
    """What a client learns of an episode beside its reward, so that it can count as if here."""
    numbers = {"metrics": metrics(instance), "reward_parts": reward_parts(instance)}
    told: dict[str, Any] = {name: values for name, values in numbers.items() if values}
    won = getattr(instance, "won", None)
    if isinstance(won, bool):  # a method of that name is a tool
        told["won"] = won
    return told


def _read_action(action: Any) -> tuple[str, str, Mapping[str, Any]]:
    if not isinstance(action, Mapping):
        raise InvalidRequest([problem("model_type", [], "Input should be an object")])
    kind = action.get("type", "call_tool")
    if kind in ("list_tools", "finish"):
        _refuse_others(action, {"type", "metadata"})
        return kind, "", {}
    if kind != "call_tool":
        raise InvalidRequest(
            [
                problem(
                    "literal_error",
                    ["type"],
                    "Input should be 'call_tool', 'list_tools' or 'finish'",
                )
            ]
        )
    _refuse_others(action, {"type", "metadata", "tool_name", "arguments"})
    name, arguments = action.get("tool_name"), action.get("arguments")
    if name is None:
        raise InvalidRequest([problem("missing", ["tool_name"], "Field required")])
    if not isinstance(name, str):
        raise InvalidRequest([problem("string_type", ["tool_name"], "Input should be a string")])
    if arguments is None:
        return kind, name, {}
    if not isinstance(arguments, Mapping):
        raise InvalidRequest([problem("dict_type", ["arguments"], "Input should be an object")])
    return kind, name, arguments


def _refuse_others(action: Mapping[str, Any], allowed: set[str]) -> None:
    others = [name for name in action if name not in allowed]
    if others:
        raise InvalidRequest(
            [
                problem("extra_forbidden", [name], "Extra inputs are not permitted")
                for name in others
            ]
        )


def _as_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return to_jsonable_python(value, fallback=str)
