"""Tools of MCP servers: one of our own, and the official one that tells the time."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.env import call_reset, close, prepare
from corral.errors import InfrastructureFault, UsageError
from corral.serve.ports import free_port
from corral.worlds import find_world
from corral.worlds.mcp import McpEnvironment, McpTools, Server, server_world
from corral.worlds.play import play_scripted
from support.door_games import calling
from support.once import made_once
from support.process_table import descendants, is_there, wait_until

PROGRAM = str(Path(__file__).parents[1] / "support" / "mcp_notebook.py")
NOTEBOOK = Server(command=(sys.executable, PROGRAM), call_timeout_s=20)

pytestmark = pytest.mark.timeout(900)


class Played:
    """An environment with its tools, closed at the end."""

    def __init__(self, factory: McpTools) -> None:
        self.kind = prepare(factory)
        self.env: Any = self.kind.construct().instance

    async def __aenter__(self) -> "Played":
        self.shown = await call_reset(self.env, {"prompt": "Go.", "goal": "x"})
        self.tools = self.kind.tools.bind(self.env)
        return self

    async def __aexit__(self, *_: object) -> None:
        await close(self.env)

    async def call(self, name: str, **arguments: Any) -> Any:
        return (await self.tools.call(name, arguments)).content


@pytest.fixture(scope="module")
def notebook() -> McpTools:
    """Examined once for all tests."""
    return McpTools(NOTEBOOK)


def test_tools_keep_their_schema(notebook: McpTools):
    tools = {tool["function"]["name"]: tool["function"] for tool in prepare(notebook).tools.schemas}
    assert set(tools) == {"write", "read", "reset_", "draw", "process", "fail"}
    write = tools["write"]
    assert write["description"] == "Write a note."
    assert write["parameters"]["required"] == ["text"]
    properties = write["parameters"]["properties"]
    assert properties["text"] == {"type": "string", "description": "What to write."}
    assert properties["colour"]["enum"] == ["red", "blue"]
    assert properties["page"]["type"] == "integer"


async def test_each_environment_has_a_process_that_each_reset_starts_anew(notebook: McpTools):
    async with Played(notebook) as one, Played(notebook) as other:
        assert one.shown == "A notebook with pages."
        assert await one.call("write", text="hello", page=2) == "There are 1 notes."
        assert await other.call("write", text="there") == "There are 1 notes."
        assert await one.call("read") == "2: hello in blue"
        pids = {int(await each.call("process")) for each in (one, other)}
        assert len(pids) == 2
        await one.env.reset()
        assert one.env.calls == []
        assert await one.call("write", text="again") == "There are 1 notes."
        pids.add(int(await one.call("process")))
        assert len(pids) == 3
    assert wait_until(lambda: not any(map(is_there, pids)))


async def test_mistakes_are_told_to_the_model_and_counted(notebook: McpTools):
    async with Played(notebook) as played:
        assert "There is no page 7." in await played.call("reset_", page=7)
        assert await played.call("reset_", page=1) == "Torn."
        assert "page" in await played.call("write", text="x", page="soon")
        assert "not found" in await played.call("erase")
        assert [call.tool for call in played.env.calls] == ["reset", "reset"]
        assert played.env.metrics == {"win": 0.0, "calls": 2.0, "failed_calls": 1.0}


async def test_pictures_are_content_blocks(notebook: McpTools):
    async with Played(notebook) as played:
        text, picture = await played.call("draw")
    assert text == {"type": "text", "text": "A dot:"}
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


async def test_a_server_that_crashes_is_an_infrastructure_fault(notebook: McpTools):
    async with Played(notebook) as played:
        with pytest.raises(InfrastructureFault, match="mcp_notebook"):
            await played.call("fail", how="crash")
        with pytest.raises(InfrastructureFault):
            await played.call("read")
        await played.env.reset()
        assert await played.call("write", text="x") == "There are 1 notes."


async def test_a_call_that_hangs_is_given_up():
    server = Server(command=NOTEBOOK.command, call_timeout_s=1.0)
    async with Played(McpTools(server)) as played:
        pid = int(await played.call("process"))
        with pytest.raises(InfrastructureFault, match=r"1\.0 seconds|Timed out"):
            await played.call("fail", how="hang")
    assert wait_until(lambda: not is_there(pid))


async def test_a_shared_server_is_one_process_and_comes_back():
    factory = McpTools(NOTEBOOK, is_shared=True)
    async with Played(factory) as one, Played(factory) as other:
        pid = await one.call("process")
        assert await other.call("process") == pid
        await one.env.reset()
        assert await one.call("process") == pid
        with pytest.raises(InfrastructureFault):
            await one.call("fail", how="crash")
        await other.env.reset()
        assert await other.call("process") != pid


def test_a_score_makes_a_world_of_it():
    def score(env: McpEnvironment) -> float:
        return float(any(call.arguments.get("text") == env.row["goal"] for call in env.calls))

    rows = [{"prompt": "Write it.", "goal": "tea"}]
    world = server_world(NOTEBOOK, rows=rows, score=score)
    (row,) = world.tasks(0, 1)
    for text, reward in (("tea", 1.0), ("coffee", 0.0)):
        game = play_scripted(world, calling([["write", {"text": text}]]), row, 0)
        assert (game.error, game.reward, game.is_win) == (None, reward, reward == 1.0)


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, PROGRAM, str(port)], stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: answers(port), within_s=60)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_may_be_reached_over_http(http_url: str):
    world = find_world(f"mcp:{http_url}")
    game = play_scripted(
        world, calling([["write", {"text": "x"}], ["read", {}]]), {"prompt": ""}, 0
    )
    assert (game.error, game.observation, game.reward) == (None, "A notebook with pages.", None)
    assert game.turns[1].content == "1: x in blue"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("no-such-program --at-all", UsageError, "no program 'no-such-program'"),
        (f"{sys.executable} -c 1", InfrastructureFault, "Connection closed$"),
        (f"{sys.executable} no_such.py", InfrastructureFault, r"(?s)It wrote:.*No such file"),
        ("http://127.0.0.1:9/mcp", InfrastructureFault, "127.0.0.1:9"),
        ("", UsageError, "an MCP server is one of them"),
    ],
)
async def test_what_is_no_server_is_told(name: str, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        find_world(f"mcp:{name}").factory()


def test_the_official_time_server(doors_python: str):
    program = Path(doors_python).with_name("mcp-server-time")
    world = find_world(f"mcp:{shlex.join([str(program), '--local-timezone', 'UTC'])}")
    calls = [
        ["get_current_time", {"timezone": "Europe/Vienna"}],
        [
            "convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        ],
        ["get_current_time", {"timezone": "Nowhere/Land"}],
    ]
    before = set(descendants(os.getpid()))
    game = play_scripted(world, calling(calls), world.tasks(0, 1)[0], 0)
    assert game.error is None
    now, converted, wrong = game.turns
    assert json.loads(str(now.content))["timezone"] == "Europe/Vienna"
    assert "21:00" in str(converted.content)
    assert wrong.is_error
    assert "Nowhere/Land" in str(wrong.content)
    assert wait_until(lambda: set(descendants(os.getpid())) <= before)


EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> str:
    """The program of the official server for tests of clients, installed by npm."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")

    def install(path: Path) -> None:
        folder = path.parent / "npm"
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), EVERYTHING]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if ran.returncode != 0:
            pytest.skip(f"npm cannot install the server: {ran.stderr[-300:]}")
        path.write_text(str(folder / "node_modules" / ".bin" / "mcp-server-everything"))

    return made_once(tmp_path_factory, worker_id, "everything", install).read_text()


def test_the_official_server_with_everything(everything: str):
    calls = {
        "echo": {"message": "hi"},
        "get_sum": {"a": 1.5, "b": 2},
        "get_tiny_image": {},
        "get_annotated_message": {"messageType": "error", "includeImage": True},
        "get_resource_links": {"count": 2},
        "get_resource_reference": {"resourceType": "Text", "resourceId": 2},
        "get_structured_content": {"location": "Chicago"},
        "gzip_file_as_resource": {"name": "x.gz", "data": "data:text/plain;base64,aGk="},
        "toggle_simulated_logging": {},
        "toggle_subscriber_updates": {},
        "trigger_long_running_operation": {"duration": 0.3, "steps": 3},
        "get_env": {},
    }
    world = find_world(f"mcp:{everything}")
    game = play_scripted(world, calling(list(calls.items())), world.tasks(0, 1)[0], 0)
    assert (game.error, [turn.is_error for turn in game.turns]) == (None, [False] * len(calls))
    # The thirteenth can only be called as a task.
    assert {tool["function"]["name"] for tool in game.tools} == set(calls)
    said = {turn.action.tool: turn.content for turn in game.turns}
    assert (said["echo"], said["get_sum"]) == ("Echo: hi", "The sum of 1.5 and 2 is 3.5.")
    for name in ("get_tiny_image", "get_annotated_message"):
        assert [block["type"] for block in said[name]][:2] == ["text", "image_url"]
    assert said["get_resource_links"].count('"type":"resource_link"') == 2
    assert "plaintext resource" in said["get_resource_reference"]
    assert set(json.loads(said["get_structured_content"])) >= {"temperature", "conditions"}
    assert "completed" in said["trigger_long_running_operation"]


STARTER = """
import asyncio, sys
from corral.worlds.mcp import McpTools, Server
env = McpTools(Server(command=(sys.executable, sys.argv[1])))()
async def go():
    await env.reset()
    print(await env.process(), flush=True)
asyncio.run(go())
"""


def test_a_server_ends_with_the_process_that_forgot_to_close_it():
    ran = subprocess.run(
        [sys.executable, "-c", STARTER, PROGRAM],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    assert wait_until(lambda: not is_there(int(ran.stdout)))
