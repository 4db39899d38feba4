"""HTTP routes, their errors, and OpenEnv's MCP dialect."""

import json
from typing import Any

import httpx
import pytest
import websockets

from corral.errors import UsageError
from corral.serve import create_app
from corral.worlds.guess_number import GuessNumber
from support.serve_sessions import Awkward, Do, Seen, peer
from support.served_app import served


def _client(address: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://{address}", trust_env=False)


async def _rpc(http: httpx.AsyncClient, method: str, **params):
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = await http.post("/mcp", json=request)
    assert response.status_code == 200
    return response.json()


async def test_descriptions_need_no_environment() -> None:
    class Costly(Awkward):
        def __init__(self) -> None:
            raise RuntimeError("made for nothing")

    async with served(create_app(Costly, Do, Seen)) as address, _client(address) as http:
        assert (await http.get("/health")).json() == {"status": "healthy"}
        assert (await http.get("/metadata")).json()["name"] == "Costly"
        schema = (await http.get("/schema")).json()
        assert schema.keys() == {"action", "observation", "state", "reset_observation"}
        assert (await http.get("/openapi.json")).json()["info"]["version"] == "1.0.0"
        failed = await http.post("/reset")
        assert failed.status_code == 500
        assert failed.json()["detail"]["code"] == "FACTORY_ERROR"


async def test_http_calls_share_nothing() -> None:
    async with served(create_app(Awkward, Do, Seen)) as address, _client(address) as http:
        reset = (await http.post("/reset", json={"seed": 5})).json()
        assert reset["observation"]["count"] == 5
        step = (await http.post("/step", json={"action": {}})).json()
        assert (step["observation"]["count"], step["reward"]) == (1, None)
        assert (await http.get("/state")).json()["step_count"] == 0


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/reset", {"seed": -1}, 422),
        ("/step", {"what": "count"}, 422),
        ("/step", {"action": {"wrong": 1}}, 422),
        ("/step", {"action": {}, "timeout_s": 0}, 422),
        ("/step", {"action": {"what": "raise"}}, 500),
        ("/nope/tasks", {"split": "train"}, 404),
        ("/awkward/tasks", {"split": "train"}, 501),
    ],
)
@pytest.mark.report("P084")
async def test_errors_over_http_are_typed(path: str, body: dict, status: int) -> None:
    async with served(create_app(Awkward, Do, Seen)) as address, _client(address) as http:
        response = await http.post(path, json=body)
        assert response.status_code == status
        detail = response.json()["detail"]
        if status == 422:
            assert {"type", "loc", "msg"} <= detail[0].keys()
        if status == 500:
            assert detail["code"] == "EXECUTION_ERROR"
            assert "hunter2" not in response.text


@pytest.mark.parametrize(
    "body",
    ['{"action":NaN}', '{"action":1e400}', '{"a":"\\ud800"}', '{"action":{},"timeout_s":NaN}', "{"],
)
async def test_a_body_that_is_no_request_is_the_requests_fault(body: str) -> None:
    async with served(create_app(Awkward, Do, Seen)) as address, _client(address) as http:
        response = await http.post(
            "/step", content=body, headers={"content-type": "application/json"}
        )
        assert response.status_code == 422
        assert {"type", "loc", "msg"} <= response.json()["detail"][0].keys()


async def test_a_seed_is_a_number() -> None:
    async with served(create_app(Awkward, Do, Seen)) as address, _client(address) as http:
        assert (await http.post("/reset", json={"seed": False})).status_code == 422


async def test_tasks_are_listed_where_the_class_lists_them() -> None:
    class Tasked(Awkward):
        made = 0

        def __init__(self) -> None:
            type(self).made += 1
            super().__init__()

        def list_splits(self) -> list[str]:
            return ["train", "hard"]

        def get_task(self, split: str, index: int) -> dict[str, object]:
            return {"id": f"{split}-{[0, 1][index]}"}

        def get_metadata(self) -> dict[str, str]:
            return {"name": "tasked", "description": "With tasks."}

    app = create_app(Tasked, Do, Seen, env_name="tasked")
    async with served(app) as address, _client(address) as http:
        assert (await http.get("/list_environments")).json() == ["tasked"]
        splits = (await http.get("/TASKED/splits")).json()
        assert splits == [
            {"name": "train", "type": "train"},
            {"name": "hard", "type": "validation"},
        ]
        task = {"split": "train", "index": 1}
        assert (await http.post("/tasked/task", json=task)).json() == {"task": {"id": "train-1"}}
        missing = await http.post("/tasked/task", json={**task, "index": 7})
        assert missing.status_code == 400
        assert (await http.post("/tasked/num_tasks", json=task)).status_code == 501
        Tasked.made = 0
        for _ in range(3):
            assert (await http.get("/metadata")).json()["description"] == "With tasks."
        assert Tasked.made == 1


async def test_production_has_no_calls_over_http() -> None:
    app = create_app(Awkward, Do, Seen, mode="production")
    async with served(app) as address, _client(address) as http:
        assert (await http.post("/reset")).status_code == 404
        assert (await http.get("/state")).status_code == 404
        assert (await http.get("/schema")).status_code == 200


async def test_a_session_over_http_is_shared_with_a_socket() -> None:
    app = create_app(GuessNumber)
    async with served(app) as address, _client(address) as http:
        session_id = (await _rpc(http, "openenv/session/create"))["result"]["session_id"]
        async with peer(address, query=f"?session_id={session_id}") as client:
            await client.ask("reset", {"secret": 7})
            called = await _rpc(
                http, "tools/call", name="guess", arguments={"n": 3}, session_id=session_id
            )
            assert called["result"]["data"] == "higher"
            assert called["result"]["is_error"] is False
            assert (await client.ask("state"))["data"]["step_count"] == 0
            async with peer(address, query=f"?session_id={session_id}") as second:
                error = (await second.read())["data"]
                assert error["code"] == "SESSION_ERROR"
            closing = await _rpc(http, "openenv/session/close", session_id=session_id)
            assert closing["result"] == {
                "session_id": session_id,
                "closed": False,
                "closing": True,
            }
            await client.send("close")
            await client.closed()
        gone = await _rpc(http, "tools/list", session_id=session_id)
        assert gone["error"]["code"] == -32602
        assert app.state.sessions.slots.active_sessions == 0


async def test_the_dialect_has_openenvs_codes() -> None:
    app = create_app(GuessNumber, max_concurrent_envs=1, queue_timeout_s=0.1)
    async with served(app) as address, _client(address) as http:
        listed = await _rpc(http, "tools/list")
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["guess"]
        assert "inputSchema" in listed["result"]["tools"][0]
        for body, code in ((b"x", -32700), (b"[]", -32700), (b"{}", -32600)):
            answer = (await http.post("/mcp", content=body)).json()
            assert (answer["id"], answer["error"]["code"]) == (None, code)
        for method, params, code in (
            ("nope", {}, -32601),
            ("tools/call", {}, -32602),
            ("tools/call", {"name": "nope"}, -32603),
            ("openenv/session/close", {}, -32602),
        ):
            assert (await _rpc(http, method, **params))["error"]["code"] == code
        await _rpc(http, "openenv/session/create")
        full = (await _rpc(http, "openenv/session/create"))["error"]
        assert full["code"] == -32000
        assert full["data"] == {"active_sessions": 1, "max_sessions": 1}


async def test_a_world_without_tools_says_so() -> None:
    async with served(create_app(Awkward, Do, Seen)) as address, _client(address) as http:
        error = (await _rpc(http, "tools/list"))["error"]
        assert (error["code"], error["message"]) == (-32603, "Environment does not support MCP")


async def test_mcp_over_a_socket_has_one_session_a_connection() -> None:
    async with (
        served(create_app(GuessNumber)) as address,
        websockets.connect(f"ws://{address}/mcp", proxy=None) as socket,
    ):
        request = {"jsonrpc": "2.0", "id": "a", "method": "tools/call"}
        await socket.send(json.dumps({**request, "params": {"name": "guess", "arguments": {}}}))
        answer = json.loads(await socket.recv())
        assert (answer["id"], answer["error"]["code"]) == ("a", -32603)
        await socket.send("{")
        assert json.loads(await socket.recv())["error"]["code"] == -32700


def test_more_sessions_than_the_class_allows_are_refused() -> None:
    class Alone(Awkward):
        SUPPORTS_CONCURRENT_SESSIONS = False

    with pytest.raises(UsageError, match="Alone does not say"):
        create_app(Alone, Do, Seen, max_concurrent_envs=2)
    assert create_app(Alone, Do, Seen).state.sessions.slots.max_sessions == 1


def test_the_capacity_of_the_environment_variable_is_taken(monkeypatch) -> None:
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", "5")
    assert create_app(Awkward, Do, Seen).state.sessions.slots.max_sessions == 5


@pytest.mark.parametrize("name", ["step", "state"])
@pytest.mark.report("P079")
def test_a_tool_with_a_name_of_the_protocol_is_refused(name: str) -> None:
    def tool(self: Any) -> str:
        """Do."""
        return "done"

    tool.__name__ = name
    world = type("World", (), {"reset": lambda self: None, name: tool})
    with pytest.raises(UsageError, match=f"World has the tool '{name}'.*Rename the method"):
        create_app(world)


def test_an_instance_is_no_factory() -> None:
    with pytest.raises(UsageError, match="Give the class itself"):
        create_app(GuessNumber())


@pytest.mark.parametrize("world", [GuessNumber, Awkward], ids=["tools", "openenv"])
def test_a_factory_is_called_once_to_look_at_what_it_makes(world: Any) -> None:
    """Factories that hand out addresses from a list have none to waste."""
    made = []

    def factory() -> Any:
        made.append(world())
        return made[-1]

    create_app(factory)
    assert len(made) == 1
