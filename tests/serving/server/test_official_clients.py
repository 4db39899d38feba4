"""The clients of the official package, played against this server."""

import asyncio

import pytest
from openenv import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from corral.serve import create_app
from corral.worlds.guess_number import GuessNumber
from support.serve_sessions import Awkward, Do, Seen
from support.served_app import served


async def test_the_generic_client_plays_a_typed_world() -> None:
    app = create_app(Awkward, Do, Seen, max_concurrent_envs=1)
    async with served(app) as address:
        for _ in range(2):  # the second one needs the slot of the first
            async with GenericEnvClient(base_url=f"http://{address}") as client:
                result = await client.reset(seed=3, episode_id="e1")
                assert result.observation["count"] == 3
                result = await client.step({"what": "end"})
                assert (result.reward, result.done) == (1.0, True)
                assert (await client.state())["episode_id"] == "e1"


@pytest.mark.report("P091")
async def test_the_synchronous_client_plays_too() -> None:
    async with served(create_app(Awkward, Do, Seen)) as address:

        def play() -> int:
            with GenericEnvClient(base_url=f"http://{address}").sync() as client:
                client.reset()
                return client.step({}).observation["count"]

        assert await asyncio.to_thread(play) == 1


async def test_the_tool_client_plays_a_class_of_tools() -> None:
    from openenv.core.env_server.mcp_types import CallToolAction

    app = create_app(GuessNumber)
    async with served(app) as address:
        async with MCPToolClient(base_url=f"http://{address}") as client:
            await client.reset(secret=7)
            assert [tool.name for tool in await client.list_tools()] == ["guess"]
            assert await client.call_tool("guess", n=3) == "higher"
            result = await client.step(CallToolAction(tool_name="guess", arguments={"n": 7}))
            assert result.observation.result == "correct"
            assert (result.reward, result.done) == (0.95, True)
            assert (await client.state()).step_count == 1
        assert app.state.sessions.slots.active_sessions == 0


@pytest.mark.report("P091")
async def test_an_official_tool_world_is_served() -> None:
    from fastmcp import FastMCP
    from openenv.core.env_server.mcp_environment import MCPEnvironment
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
    from openenv.core.env_server.types import Observation, State

    class Adder(MCPEnvironment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            server = FastMCP("adder")
            self.steps = 0

            @server.tool()
            def add(a: int, b: int) -> int:
                """Add two numbers."""
                return a + b

            super().__init__(server)

        def reset(self, seed=None, episode_id=None, **kwargs) -> Observation:
            return Observation()

        def _step_impl(self, action, timeout_s=None, **kwargs) -> Observation:
            return Observation()

        @property
        def state(self) -> State:
            return State(step_count=self.steps)

    app = create_app(Adder, CallToolAction, CallToolObservation)
    async with served(app) as address:
        async with MCPToolClient(base_url=f"http://{address}") as client:
            await client.reset()
            assert [tool.name for tool in await client.list_tools()] == ["add"]
            assert await client.call_tool("add", a=2, b=3) == 5
            result = await client.step(CallToolAction(tool_name="add", arguments={"a": 2, "b": 4}))
            assert result.observation.error is None
        assert app.state.sessions.slots.active_sessions == 0
