"""Answers the tool calls of one assistant message."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from corral.env import BoundTools, ToolSet
from corral.records import MalformedCall, Message, ToolCall, ToolCounts

UNNAMED = "unknown"
"""Tool messages need a name; a call that cannot be parsed has none."""


async def answer_calls(
    calls: Sequence[ToolCall | MalformedCall], tools: ToolSet, bound: BoundTools
) -> tuple[list[Message], ToolCounts]:
    """One tool message for each call, in call order, and what became of the calls.

    An environment is not thread-safe, so its synchronous methods run alone: everything called
    before has ended, and nothing called after has begun. Neighbouring asynchronous calls (and calls
    of standalone functions, which share no environment) run at the same time. A malformed call is
    never executed: the model reads what is wrong with it.

    Raises:
        InfrastructureFault: Something beneath a tool failed; the first in call order.
    """
    answers: list[tuple[Message, bool]] = []
    for batch in _batches(calls, tools):
        answers += await _gather([_answer(call, bound) for call in batch])
    counts = ToolCounts(
        calls=len(calls),
        failures=sum(is_error for _, is_error in answers),
        malformed=sum(isinstance(call, MalformedCall) for call in calls),
    )
    return [message for message, _ in answers], counts


def added(first: ToolCounts, second: ToolCounts) -> ToolCounts:
    """The counts of both."""
    return ToolCounts(
        calls=first.calls + second.calls,
        failures=first.failures + second.failures,
        malformed=first.malformed + second.malformed,
    )


def characters_of(results: Sequence[Message]) -> int:
    """How long the texts of the results are together; content blocks do not count."""
    contents = [message.get("content") for message in results]
    return sum(len(content) for content in contents if isinstance(content, str))


def longest_of(results: Sequence[Message]) -> tuple[str, int]:
    """The tool with the longest result, and how many characters it has."""
    lengths = [(characters_of([message]), message.get("name", UNNAMED)) for message in results]
    characters, name = max(lengths)
    return name, characters


def for_template(results: Sequence[Message], tools: ToolSet) -> list[Message]:
    """The results as a template may see them: a tool name that the model made up is data, and
    neither rendered nor worth caching a template for."""
    return [
        message if message.get("name", UNNAMED) in tools.names else {**message, "name": UNNAMED}
        for message in results
    ]


def _batches(
    calls: Sequence[ToolCall | MalformedCall], tools: ToolSet
) -> list[list[ToolCall | MalformedCall]]:
    """The calls in order, cut into those that may run at the same time."""
    batches: list[list[ToolCall | MalformedCall]] = []
    is_open = False
    for call in calls:
        is_alone = isinstance(call, ToolCall) and _runs_alone(call.name, tools)
        if is_open and not is_alone:
            batches[-1].append(call)
        else:
            batches.append([call])
        is_open = not is_alone
    return batches


def _runs_alone(name: str, tools: ToolSet) -> bool:
    tool = tools.find(name)
    return tool is not None and not tool.is_async and tool.function is None


async def _answer(call: ToolCall | MalformedCall, bound: BoundTools) -> tuple[Message, bool]:
    if isinstance(call, MalformedCall):
        return _tool_message(UNNAMED, repr({"error": call.error})), True
    result = await bound.call(call.name, call.arguments)
    return _tool_message(call.name, result.content), result.is_error


def _tool_message(name: str, content: Any) -> Message:
    return {"role": "tool", "name": name, "content": content}


async def _gather(
    answers: Sequence[Coroutine[Any, Any, tuple[Message, bool]]],
) -> list[tuple[Message, bool]]:
    """All answers once all have ended, so that no tool is left running behind an error."""
    ended = await asyncio.gather(*answers, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if not isinstance(outcome, BaseException)]
