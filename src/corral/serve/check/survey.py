"""Looks at a server once, so that the checks know what it has to show."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from corral.serve.check.instances import NoInstanceError, valid_instance
from corral.serve.check.target import Facts, Target, error_of
from corral.serve.check.verdict import CheckFailed

_TROUBLE = (CheckFailed, OSError, TimeoutError)


async def survey(target: Target) -> Facts:
    """What the server offers. What is wrong with it is for the checks to say."""
    tools = await _tools(target)
    facts = Facts(
        schemas=await _object(target, "/schema"),
        paths=_paths(await _object(target, "/openapi.json")),
        tools=tools,
        tool_call=await _working_call(target, tools or ()),
    )
    return await _with_action(target, facts)


async def _object(target: Target, path: str) -> Mapping[str, Any] | None:
    try:
        found = (await target.get(path)).json
    except _TROUBLE:
        return None
    return found if isinstance(found, dict) else None


def _paths(document: Mapping[str, Any] | None) -> frozenset[str] | None:
    paths = (document or {}).get("paths")
    return frozenset(paths) if isinstance(paths, dict) else None


async def _tools(target: Target) -> tuple[Mapping[str, Any], ...] | None:
    try:
        result = (await target.rpc("tools/list")).get("result")
    except _TROUBLE:
        return None
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list):
        return None
    return tuple(tool for tool in tools if isinstance(tool, dict) and tool.get("name"))


async def _working_call(
    target: Target, tools: tuple[Mapping[str, Any], ...]
) -> Mapping[str, Any] | None:
    given = target.probes.action
    if isinstance(given, dict) and "tool_name" in given:
        return {"name": given["tool_name"], "arguments": given.get("arguments", {})}
    for tool in tools:
        try:
            arguments = valid_instance(tool.get("inputSchema") or {})
            answer = await target.rpc("tools/call", name=tool["name"], arguments=arguments)
        except (*_TROUBLE, NoInstanceError):
            continue
        result = answer.get("result")
        if isinstance(result, dict) and not (result.get("is_error") or result.get("isError")):
            return {"name": tool["name"], "arguments": arguments}
    return None


async def _with_action(target: Target, facts: Facts) -> Facts:
    why = "nothing could be derived from /schema; give one with --action"
    refused = None
    for action in _candidates(target, facts):
        try:
            async with target.session() as socket:
                reset = await socket.ask({"type": "reset", "data": {**target.probes.reset}})
                if reset.get("type") == "error":
                    message = error_of(reset).get("message")
                    why = f"reset answered {message!r}; say what it needs with --reset"
                    break
                came = await socket.ask({"type": "step", "data": action})
        except _TROUBLE as error:
            why = f"the survey's game broke off ({error})"
            break
        data = came.get("data")
        if came.get("type") == "observation" and isinstance(data, dict):
            return replace(
                facts, action=action, why_no_action="", is_open=data.get("done") is not True
            )
        problem = error_of(came).get("message", came)
        if error_of(came).get("code") == "VALIDATION_ERROR":
            refused = (action, came)
        why = f"{action} was answered with {problem!r}; give one with --action"
    return replace(facts, why_no_action=why, refused=refused)


def _candidates(target: Target, facts: Facts) -> Iterator[Any]:
    if target.probes.action is not None:
        yield target.probes.action
        return
    if facts.tool_call is not None and _is_call_schema((facts.schemas or {}).get("action")):
        yield {
            "type": "call_tool",
            "tool_name": facts.tool_call["name"],
            "arguments": facts.tool_call["arguments"],
        }
    schema = (facts.schemas or {}).get("action")
    if isinstance(schema, dict):
        try:
            yield valid_instance(schema)
        except NoInstanceError:
            return


def _is_call_schema(schema: Any) -> bool:
    """Whether an action is a tool call, or says nothing about itself."""
    if not isinstance(schema, dict):
        return False
    properties = schema.get("properties", {})
    return "tool_name" in properties or set(properties) <= {"metadata"}
