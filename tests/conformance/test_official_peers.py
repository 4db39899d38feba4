"""Items 2 and 23: what the official package brings for clients and validation works on Corral."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from openenv.core import GenericEnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import State
from openenv.core.mcp_client import MCPToolClient

from support.openenv_worlds import ProbeAction, ProbeObservation
from support.server_process import ServerProcess, served

IMPLEMENTATIONS = ["official", "corral"]


class TypedProbeClient(EnvClient[ProbeAction, ProbeObservation, State]):
    """As ``openenv init`` generates clients."""

    def _step_payload(self, action: ProbeAction) -> dict[str, Any]:
        return {"message": action.message}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ProbeObservation]:
        found = payload.get("observation", {})
        observation = ProbeObservation(
            echoed=found["echoed"],
            step=found["step"],
            done=payload.get("done", False),
            reward=payload.get("reward"),
            metadata=found.get("metadata", {}),
        )
        return StepResult(
            observation=observation, reward=payload.get("reward"), done=payload.get("done", False)
        )

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(episode_id=payload.get("episode_id"), step_count=payload["step_count"])


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def probe_world(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with served(request.param, "probe", "--sessions", "1") as server:
        yield server


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def tool_world(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with served(request.param, "tools", "--sessions", "1") as server:
        yield server


@pytest.mark.report("P094")
async def test_generic_client(probe_world: ServerProcess) -> None:
    for episode in ("a", "b"):  # the second one needs the slot of the first
        async with GenericEnvClient(base_url=probe_world.url) as client:
            result = await client.reset(seed=7, episode_id=episode, level="hard")
            assert result.observation["echoed"] == "ready"
            assert result.observation["metadata"] == {"seed": 7, "level": "hard"}
            assert (result.reward, result.done) == (None, False)
            result = await client.step({"message": "hello"})
            assert result.observation == {"metadata": {}, "echoed": "hello", "step": 1}
            assert result.reward == 0.5
            state = await client.state()
            assert (state["episode_id"], state["step_count"]) == (episode, 1)


def test_generic_client_in_blocking_code(probe_world: ServerProcess) -> None:
    for _ in range(2):
        with GenericEnvClient(base_url=probe_world.url).sync() as client:
            assert client.reset().observation["echoed"] == "ready"
            assert client.step({"message": "hi"}).reward == 0.2
            assert client.state()["step_count"] == 1


async def test_typed_client(probe_world: ServerProcess) -> None:
    async with TypedProbeClient(base_url=probe_world.url) as client:
        assert (await client.reset(episode_id="t")).observation.echoed == "ready"
        result = await client.step(ProbeAction(message="typed"))
        assert result.observation.echoed == "typed"
        assert result.observation.reward == 0.5
        assert await client.state() == State(episode_id="t", step_count=1)


async def test_client_is_told_what_is_wrong_and_goes_on(probe_world: ServerProcess) -> None:
    async with GenericEnvClient(base_url=probe_world.url) as client:
        await client.reset()
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            await client.step({"message": ""})
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            await client.step({"message": "boom"})
        assert (await client.step({"message": "on"})).observation["step"] == 1


async def test_client_too_many_is_told_so(probe_world: ServerProcess) -> None:
    async with GenericEnvClient(base_url=probe_world.url) as first:
        await first.reset()
        second = GenericEnvClient(base_url=probe_world.url)
        await second.connect()
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            await second.reset()
        await second.close()
    async with GenericEnvClient(base_url=probe_world.url) as third:
        assert (await third.reset()).observation["echoed"] == "ready"


async def test_tool_client(tool_world: ServerProcess) -> None:
    for _ in range(2):
        client = MCPToolClient(base_url=tool_world.url)
        try:
            await client.connect()
            await client.reset(episode_id="m")
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert set(tools) == {"add", "remember", "boom"}
            assert tools["add"].description == "Add two numbers."
            assert set(tools["add"].input_schema["properties"]) == {"a", "b"}
            assert await client.call_tool("add", a=2, b=3) == 5
            # Calls meet the environment of the session.
            assert [await client.call_tool("remember", text=str(n)) for n in range(2)] == [1, 2]
            with pytest.raises(RuntimeError):
                await client.call_tool("no_such_tool")
            with pytest.raises(RuntimeError):
                await client.call_tool("boom")
            assert (await client.state()).episode_id == "m"
        finally:
            await client.close()


@pytest.mark.parametrize("world", ["probe", "tools"])
@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_openenv_validate(world: str, mode: str) -> None:
    with served("corral", world, "--mode", mode, "--sessions", "1") as server:
        ran = subprocess.run(
            [
                *(sys.executable, "-c", "from openenv.cli.__main__ import main; main()"),
                *("validate", "--url", server.url, "--json"),
            ],
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    assert report["passed"] is True, ran.stdout
    assert report["standard_profile"].startswith("openenv-http/1")
