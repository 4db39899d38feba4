"""The official MCP client against our server, and beside OpenEnv's own."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import mcp.types as types
import pytest
import websockets
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from corral.serve import create_app
from support.mcp_worlds import NeedsNumber, Safe, Slow
from support.served_app import served


@asynccontextmanager
async def connected(
    address: str, *, headers: dict[str, str] | None = None
) -> AsyncIterator[tuple[ClientSession, types.InitializeResult]]:
    async with (
        httpx.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(f"http://{address}/mcp", http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        yield session, await session.initialize()


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_a_client_lists_and_calls_tools():
    async with served(create_app(Safe)) as address, connected(address) as (client, started):
        assert started.serverInfo.name == "Safe"
        assert started.instructions == "The safe is shut."
        assert started.protocolVersion == types.LATEST_PROTOCOL_VERSION
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"turn", "force", "look", "weigh"}
        assert tools["turn"].description == "Turn the lock."
        assert tools["turn"].inputSchema["required"] == ["to"]
        wrong = await client.call_tool("turn", {"to": 3})
        assert (text_of(wrong), wrong.isError) == ("shut after 1", False)
        assert wrong.structuredContent == {"result": "shut after 1"}
        assert text_of(await client.call_tool("turn", {"to": 7})) == "open"
        assert (await client.call_tool("weigh")).structuredContent == {"kilograms": 90.5}
        await client.send_ping()


async def test_pictures_arrive_as_pictures():
    async with served(create_app(Safe)) as address, connected(address) as (client, _):
        shown = (await client.call_tool("look")).content
        assert [block.type for block in shown] == ["text", "image"]
        assert isinstance(shown[1], types.ImageContent)
        assert (shown[1].data, shown[1].mimeType) == ("aGk=", "image/png")


async def test_what_a_tool_raises_is_an_error_for_the_model_and_ends_nothing():
    async with served(create_app(Safe)) as address, connected(address) as (client, _):
        failed = await client.call_tool("force")
        assert (failed.isError, text_of(failed)) == (True, "The crowbar broke.")
        bad = await client.call_tool("turn", {"to": "left"})
        assert bad.isError
        assert "to" in text_of(bad)
        with pytest.raises(McpError, match="Unknown tool: fly") as caught:
            await client.call_tool("fly")
        assert caught.value.error.code == types.INVALID_PARAMS
        with pytest.raises(McpError) as caught:
            await client.list_prompts()
        assert caught.value.error.code == types.METHOD_NOT_FOUND
        assert text_of(await client.call_tool("turn", {"to": 1})) == "shut after 1"


async def test_two_sessions_share_nothing_and_each_frees_its_slot():
    app = create_app(Safe, max_concurrent_envs=2, queue_timeout_s=0.2)
    slots = app.state.sessions.slots
    async with served(app) as address:
        async with connected(address) as (first, _), connected(address) as (second, _):
            assert slots.active_sessions == 2
            assert text_of(await first.call_tool("turn", {"to": 1})) == "shut after 1"
            assert text_of(await first.call_tool("turn", {"to": 1})) == "shut after 2"
            assert text_of(await second.call_tool("turn", {"to": 1})) == "shut after 1"
            with pytest.raises(BaseExceptionGroup) as caught:
                async with connected(address):
                    pass
            assert caught.group_contains(McpError, match="2/2 sessions")
        await until(lambda: slots.active_sessions == 0)
        async with connected(address):
            assert slots.active_sessions == 1


@pytest.mark.report("P088")
async def test_a_client_that_leaves_without_a_word_is_reaped():
    app = create_app(Safe, idle_timeout_s=0.2)
    async with served(app) as address, connected(address) as (client, _):
        await until(lambda: app.state.sessions.slots.active_sessions == 0)
        with pytest.raises(McpError, match="terminated"):
            await client.call_tool("turn", {"to": 1})


async def test_a_tool_that_hangs_costs_its_session_only():
    app = create_app(Slow, step_timeout_s=0.1)
    async with served(app) as address, connected(address) as (other, _):
        async with connected(address) as (client, _):
            with pytest.raises(McpError, match="took longer than"):
                await client.call_tool("turn", {"to": 1})
            with pytest.raises(McpError, match="terminated"):
                await client.call_tool("weigh")
        assert not (await other.call_tool("weigh")).isError


async def test_calls_made_at_once_are_made_one_after_the_other():
    async with served(create_app(Safe)) as address, connected(address) as (client, _):
        answers = await asyncio.gather(*(client.call_tool("turn", {"to": 1}) for _ in range(20)))
        assert {text_of(answer) for answer in answers} == {f"shut after {n}" for n in range(1, 21)}


async def test_an_episode_starts_with_what_the_header_says():
    async with served(create_app(NeedsNumber)) as address:
        with pytest.raises(BaseExceptionGroup) as caught:
            async with connected(address):
                pass
        assert caught.group_contains(McpError, match="number: Field required.*Corral-Reset")
        async with connected(address, headers={"Corral-Reset": '{"number": 12}'}) as (client, _):
            assert text_of(await client.call_tool("turn", {"to": 12})) == "open"


@pytest.mark.parametrize("who_leaves_first", ["agent", "runner"])
async def test_whoever_runs_the_agent_gets_the_reward_over_the_websocket(who_leaves_first: str):
    app = create_app(Safe)
    slots = app.state.sessions.slots
    async with (
        served(app) as address,
        httpx.AsyncClient() as http,
        AsyncExitStack() as agent,
    ):
        read, write, session_id = await agent.enter_async_context(
            streamable_http_client(f"http://{address}/mcp", http_client=http)
        )
        client = await agent.enter_async_context(ClientSession(read, write))
        await client.initialize()
        await client.call_tool("turn", {"to": 7})
        url = f"ws://{address}/ws?session_id={session_id()}"
        async with websockets.connect(url, proxy=None) as socket:
            if who_leaves_first == "agent":
                await agent.aclose()
            await socket.send(json.dumps({"type": "step", "data": {"type": "finish"}}))
            answer = json.loads(await socket.recv())
            assert answer["data"]["reward"] == 1.0
            await socket.send(json.dumps({"type": "close"}))
        if who_leaves_first == "runner":
            assert slots.active_sessions == 1
            assert text_of(await client.call_tool("turn", {"to": 1})) == "shut after 2"
            await agent.aclose()
        await until(lambda: slots.active_sessions == 0)


@pytest.mark.report("P091")
async def test_openenv_clients_play_on_the_same_server_at_the_same_time():
    app = create_app(Safe)
    async with served(app) as address, connected(address) as (client, _):
        await client.call_tool("turn", {"to": 1})
        async with MCPToolClient(base_url=f"http://{address}") as tools:
            await tools.reset()
            assert {tool.name for tool in await tools.list_tools()} >= {"turn", "weigh"}
            assert await tools.call_tool("turn", to=1) == "shut after 1"
        async with GenericEnvClient(base_url=f"http://{address}") as generic:
            await generic.reset()
            action = {"type": "call_tool", "tool_name": "turn", "arguments": {"to": 7}}
            result = await generic.step(action)
            assert (result.reward, result.done) == (1.0, True)
        assert text_of(await client.call_tool("turn", {"to": 1})) == "shut after 2"


async def until(condition, limit_s: float = 10.0) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - what is waited for sends no event
            await asyncio.sleep(0.01)
