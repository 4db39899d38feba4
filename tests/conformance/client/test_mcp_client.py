"""Tools of a server of the official package, with what its own client gets wrong."""

import pytest

from corral.serve.client import RemoteError, ToolCallError
from corral.serve.client.mcp_client import CallToolAction, ListToolsAction, MCPToolClient
from support.scripted_peer import Peer, ScriptedPeer


async def test_tools_are_listed_also_those_without_a_description(toolbox: str):
    async with MCPToolClient(toolbox) as env:
        tools = {tool.name: tool for tool in await env.list_tools()}
        assert set(tools) == {"put", "nameless", "explode"}
        assert tools["nameless"].description == ""
        assert set(tools["put"].input_schema["properties"]) == {"thing", "times"}
        assert await env.has_tool("put")
        assert await env.get_tool("nope") is None


async def test_calls_and_steps_reach_the_same_environment(toolbox: str):
    async with MCPToolClient(toolbox) as env:
        assert (await env.reset()).reward == 0.0
        assert await env.call_tool("put", thing="ball") == "1 things"
        result = await env.step(CallToolAction("put", {"thing": "cup", "times": 2}))
        assert result.observation["tool_name"] == "put"
        assert result.observation["error"] is None
        assert await env.call_tool("nameless") == 3
        assert (await env.state())["step_count"] == 3
        listed = (await env.step(ListToolsAction())).observation["tools"]
        assert "put" in {tool.name for tool in listed}


async def test_what_goes_wrong_is_told_and_the_session_goes_on(toolbox: str):
    async with MCPToolClient(toolbox) as env:
        await env.reset()
        with pytest.raises(ToolCallError, match="it exploded"):
            await env.call_tool("explode")
        with pytest.raises(ToolCallError, match="nope"):
            await env.call_tool("nope")
        assert await env.call_tool("put", thing="ball") == "1 things"


async def test_a_world_without_tools_says_so_instead_of_an_empty_list(counter: str):
    async with MCPToolClient(counter) as env:
        with pytest.raises(RemoteError, match="does not support MCP") as caught:
            await env.list_tools()
        assert caught.value.code == "-32603"


def test_blocking_use_and_other_modes(toolbox: str):
    with MCPToolClient(toolbox) as env:
        env.reset()
        assert env.call_tool("put", thing="ball") == "1 things"
        assert env.has_tool("put")
    with pytest.raises(ValueError, match="production"):
        MCPToolClient(toolbox, mode="simulation")


async def test_both_spellings_of_the_schema_are_read():
    async def handler(peer: Peer, _: int) -> None:
        frame = await peer.read()
        tools = [
            {"name": "a", "description": None, "input_schema": {"type": "object"}},
            {"name": "b", "inputSchema": {"title": "b"}},
        ]
        await peer.say(
            "mcp", {"jsonrpc": "2.0", "id": frame["data"]["id"], "result": {"tools": tools}}
        )
        await peer.read()

    with ScriptedPeer(handler, subprotocols=()) as server:
        async with MCPToolClient(server.url) as env:
            a, b = await env.list_tools()
            assert (a.input_schema, b.input_schema) == ({"type": "object"}, {"title": "b"})
