"""Which tools a server's world has for a model, and which action each call is."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from corral.env.signatures import Schema, ToolSpec, python_name, resolved
from corral.serve.client.address import Address
from corral.serve.client.errors import ProtocolError, ServerUnreachableError
from corral.serve.client.http import http_json
from corral.serve.client.options import ClientOptions

RESERVED = ("reset", "get_reward", "close", "done", "metrics", "reward_parts", "won")
"""What an environment object is asked itself."""
_CHOOSING_FIELDS = ("type", "action_type", "action", "kind", "command")
_TEXT: Schema = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTool:
    """One tool of a served world."""

    spec: ToolSpec
    """As the model sees it."""
    remote_name: str
    """As the server calls it."""
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the action that the choice of the tool already says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWorld:
    """A served world, examined once."""

    name: str
    tools: tuple[RemoteTool, ...]
    style: Literal["corral", "mcp", "typed"]
    """``corral``: tool methods, with an end and a reward. ``mcp``: OpenEnv's MCP tools, called
    through ``step``. ``typed``: the tools are the fields of OpenEnv's action."""


def examine(address: Address, options: ClientOptions) -> RemoteWorld:
    """Ask a server what its world offers.

    Raises:
        ServerUnreachableError: It does not answer.
        ProtocolError: It does not say enough.
    """
    schemas = _get(address, "/schema", options)
    action: Any = schemas.get("action") if isinstance(schemas, Mapping) else None
    if not isinstance(action, Mapping):
        raise ProtocolError(f"{address}/schema does not describe the world's action.")
    name = _world_name(address, options, action)
    if _is_tool_action(action):
        tools = tuple(_listed_tool(tool) for tool in _list_tools(address, options))
        return RemoteWorld(name=name, tools=_named_apart(tools), style="corral")
    if _may_be_mcp(action):
        listed = _list_tools(address, options)
        return RemoteWorld(
            name=name, tools=_named_apart([_listed_tool(tool) for tool in listed]), style="mcp"
        )
    return RemoteWorld(name=name, tools=_named_apart(_tools_of_action(action)), style="typed")


def _get(address: Address, path: str, options: ClientOptions) -> Any:
    limit = options.connect_timeout_s
    return http_json(address, path, headers=options.all_headers(), timeout_s=limit)


def _world_name(address: Address, options: ClientOptions, action: Mapping[str, Any]) -> str:
    try:
        told = _get(address, "/metadata", options)
    except (ServerUnreachableError, ProtocolError):
        told = {}
    name = told.get("name") if isinstance(told, Mapping) else None
    return python_name(str(name or action.get("title") or "RemoteWorld"))


def _list_tools(address: Address, options: ClientOptions) -> list[Mapping[str, Any]]:
    answer = http_json(
        address,
        "/mcp",
        body={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
        headers=options.all_headers(),
        timeout_s=options.connect_timeout_s,
    )
    return tools_from(answer)


def tools_from(answer: Any) -> list[Mapping[str, Any]]:
    """The tools in the answer to ``tools/list``.

    Raises:
        ProtocolError: It is an error, or no list of tools.
    """
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(error, Mapping):
        raise ProtocolError(f"tools/list: {error.get('message')} (code: {error.get('code')})")
    result = answer.get("result") if isinstance(answer, Mapping) else None
    tools = result.get("tools") if isinstance(result, Mapping) else None
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise ProtocolError("The server's answer to tools/list has no list of tools.")
    return cast("list[Mapping[str, Any]]", tools)


def _listed_tool(tool: Mapping[str, Any]) -> RemoteTool:
    schema = tool.get("inputSchema") or tool.get("input_schema") or {}
    meta: Any = tool.get("_meta") or tool.get("meta") or {}
    own: Any = meta.get("corral") if isinstance(meta, Mapping) else None
    returns: Any = own.get("return") if isinstance(own, Mapping) else _TEXT
    name = str(tool.get("name"))
    spec = ToolSpec(
        name=name,
        description=str(tool.get("description") or ""),
        parameters=schema,
        returns=returns,
    )
    return RemoteTool(spec=spec, remote_name=name)


def _is_tool_action(action: Mapping[str, Any]) -> bool:
    """Whether this is the action of a Corral class of tool methods: it can be finished."""
    variants = action.get("oneOf")
    return isinstance(variants, list) and any(
        isinstance(variant, Mapping)
        and variant.get("properties", {}).get("type", {}).get("const") == "finish"
        for variant in variants
    )


def _may_be_mcp(action: Mapping[str, Any]) -> bool:
    fields = set(action.get("properties") or {}) - {"metadata"}
    return "oneOf" not in action and (not fields or {"tool_name", "arguments"} <= fields)


def _tools_of_action(action: Mapping[str, Any]) -> list[RemoteTool]:
    """One tool per sensible action: per variant, per value of the field that chooses, or one."""
    definitions: Any = action.get("$defs") or {}
    variants = action.get("oneOf") or action.get("anyOf")
    if isinstance(variants, list):
        return [
            tool
            for variant in variants
            for tool in _tools_of_action({**resolved(variant, definitions), "$defs": definitions})
        ]
    properties: dict[str, Any] = {
        name: schema
        for name, schema in (action.get("properties") or {}).items()
        if name != "metadata"
    }
    chooser, choices = _chooser(properties, action.get("required") or (), definitions)
    title = str(action.get("title") or "")
    told = str(action.get("description") or "").strip()
    if chooser is None:
        name = _snake(title.removesuffix("Action")) or "step"
        return [_action_tool(action, name, told, properties, {})]
    rest = {name: schema for name, schema in properties.items() if name != chooser}
    return [
        _action_tool(action, choice, _described(told, choice, choices), rest, {chooser: choice})
        for choice in choices
    ]


def _described(told: str, choice: str, choices: Sequence[str]) -> str:
    if len(choices) == 1:
        return told
    said = f"{choice.replace('_', ' ').strip().capitalize()}."
    return f"{said} {told}".strip()


def _chooser(
    properties: Mapping[str, Any], required: Sequence[str], definitions: Schema
) -> tuple[str | None, list[str]]:
    """The field whose value says what kind of action it is, and its values."""
    found = {
        name: choices
        for name, schema in properties.items()
        if (choices := _choices(resolved(schema, definitions)))
    }
    for name in _CHOOSING_FIELDS:
        if name in found:
            return name, found[name]
    needed = [name for name in found if name in required]
    return (needed[0], found[needed[0]]) if len(needed) == 1 else (None, [])


def _choices(schema: Schema) -> list[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return []
    return [value for value in values if value]


def _action_tool(
    action: Mapping[str, Any],
    name: str,
    description: str,
    properties: Mapping[str, Any],
    constants: Mapping[str, Any],
) -> RemoteTool:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": [field for field in action.get("required") or () if field in properties],
        "$defs": action.get("$defs") or {},
    }
    spec = ToolSpec(name=name, description=description, parameters=parameters, returns=_TEXT)
    return RemoteTool(spec=spec, remote_name=name, constants=constants)


def _snake(title: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", title).lower()


def _named_apart(tools: Sequence[RemoteTool]) -> tuple[RemoteTool, ...]:
    """The tools with names that methods of one class can have."""
    taken: list[str] = [*RESERVED]
    named: list[RemoteTool] = []
    for tool in tools:
        name = python_name(tool.spec.name, taken=taken)
        taken.append(name)
        spec = ToolSpec(
            name=name,
            description=tool.spec.description,
            parameters=tool.spec.parameters,
            returns=tool.spec.returns,
        )
        named.append(RemoteTool(spec=spec, remote_name=tool.remote_name, constants=tool.constants))
    return tuple(named)
