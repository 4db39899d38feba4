"""Single requests of the standard protocol: what the official client never sends, too."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.serve import create_app
from support.mcp_worlds import NeedsNumber, Safe


@asynccontextmanager
async def client_of(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http
    await app.state.sessions.end_all()


@pytest.fixture
async def client():
    async with client_of(create_app(Safe)) as http:
        yield http


def request(method: str, params: Any = None, request_id: Any = 1) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method, "id": request_id, "params": params}
    return {name: value for name, value in message.items() if value is not None}


def start(revision: str = "2025-06-18", **capabilities: Any) -> dict[str, Any]:
    who = {"name": "test", "version": "1"}
    return request(
        "initialize",
        {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": who},
    )


async def session_of(client: httpx.AsyncClient) -> dict[str, str]:
    answer = await client.post("/mcp", json=start())
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"]}


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ],
)
async def test_the_revision_is_the_clients_if_it_is_known_and_the_newest_otherwise(
    client, asked: str, got: str
):
    result = (await client.post("/mcp", json=start(asked))).json()["result"]
    assert result["protocolVersion"] == got
    assert result["capabilities"]["tools"] == {"listChanged": False}


async def test_what_reset_answered_is_in_the_answer_in_full(client):
    result = (await client.post("/mcp", json=start())).json()["result"]
    assert result["instructions"] == "The safe is shut."
    shown = result["_meta"]["corral/reset"]
    assert shown["observation"]["result"] == "The safe is shut."
    assert (shown["reward"], shown["done"]) == (None, False)
    assert (
        "number" in result["capabilities"]["experimental"]["corral/reset"]["schema"]["properties"]
    )


async def test_reset_is_called_with_what_the_capability_says():
    async with client_of(create_app(NeedsNumber)) as http:
        begun = await http.post("/mcp", json=start(experimental={"corral/reset": {"number": 5}}))
        headers = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        call = request("tools/call", {"name": "turn", "arguments": {"to": 5}})
        answer = (await http.post("/mcp", json=call, headers=headers)).json()
        assert answer["result"]["content"] == [{"type": "text", "text": "open"}]


@pytest.mark.parametrize("bad", [5, "x", [], True])
async def test_what_cannot_start_an_episode_is_refused_and_takes_no_slot(bad):
    app = create_app(Safe)
    async with client_of(app) as http:
        answer = await http.post("/mcp", json=start(experimental={"corral/reset": bad}))
        assert answer.json()["error"]["code"] == -32602
        broken = {"Corral-Reset": "{"}
        answer = await http.post("/mcp", json=start(), headers=broken)
        assert "not JSON" in answer.json()["error"]["message"]
        foreign = {"experimental": {"corral/reset": {"number": []}}}
        await http.post("/mcp", json=start(**foreign))
        unasked = request("initialize", {"capabilities": {}})
        assert (
            "protocolVersion" in (await http.post("/mcp", json=unasked)).json()["error"]["message"]
        )
        assert app.state.sessions.slots.active_sessions <= 1


async def test_a_notification_is_accepted_without_an_answer(client):
    headers = await session_of(client)
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ):
        answer = await client.post("/mcp", json=message, headers=headers)
        assert (answer.status_code, answer.content) == (202, b"")


async def test_delete_ends_the_session(client):
    headers = await session_of(client)
    assert (await client.post("/mcp", json=request("ping"), headers=headers)).status_code == 200
    assert (await client.delete("/mcp", headers=headers)).status_code == 204
    assert (await client.delete("/mcp", headers=headers)).status_code == 404
    gone = await client.post("/mcp", json=request("ping"), headers=headers)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, -32600)


async def test_there_is_no_stream_to_open(client):
    headers = await session_of(client)
    answer = await client.get("/mcp", headers={**headers, "Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")


async def test_a_session_of_a_socket_is_nobody_elses(client):
    answer = await client.post(
        "/mcp", json=request("ping"), headers={"Mcp-Session-Id": "s-unknown"}
    )
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"a": NaN}', -32700),
        (b"[]", -32600),
        (b"[" * 5000, -32700),
        (b'"x"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "method": "ping", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": 5, "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": true}', -32600),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": 1, "params": [1]}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    ],
)
async def test_what_is_no_message_is_refused_with_the_code_of_the_fault(client, body, code: int):
    headers = await session_of(client)
    answer = await client.post("/mcp", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    ping = await client.post("/mcp", json=request("ping"), headers=headers)
    assert ping.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "name"),
        ({"name": 5}, "name"),
        ({"name": "turn", "arguments": [1]}, "arguments"),
        ({"name": "reset"}, "Unknown tool: reset"),
        ({"name": "get_reward"}, "Unknown tool"),
        ({"name": "x" * 1000}, "Unknown tool"),
    ],
)
@pytest.mark.report("P084")
async def test_a_call_of_no_tool_is_a_fault_of_the_client(client, params, message: str):
    headers = await session_of(client)
    answer = await client.post("/mcp", json=request("tools/call", params), headers=headers)
    error = answer.json()["error"]
    assert (error["code"], message in error["message"]) == (-32602, True)
    assert len(error["message"]) < 200


async def test_a_session_header_that_is_missing_or_a_revision_from_nowhere_is_refused(client):
    known = {"MCP-Protocol-Version": "2025-06-18"}
    answer = await client.post("/mcp", json=request("tools/list"), headers=known)
    assert (answer.status_code, "Mcp-Session-Id" in answer.text) == (400, True)
    headers = {**await session_of(client), "MCP-Protocol-Version": "1999-01-01"}
    answer = await client.post("/mcp", json=request("tools/list"), headers=headers)
    assert (answer.status_code, "2025-11-25" in answer.text) == (400, True)


async def test_openenvs_dialect_answers_as_before(client):
    listed = (await client.post("/mcp", json=request("tools/list"))).json()["result"]["tools"]
    assert {"title", "outputSchema"} <= set(listed[0])
    called = await client.post("/mcp", json=request("tools/call", {"name": "weigh"}))
    assert "is_error" in json.dumps(called.json())
    assert (await client.post("/mcp", json={})).json()["error"]["code"] == -32600
    assert (await client.post("/mcp", content=b"x")).json()["error"]["code"] == -32700


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
METHODS = ["initialize", "ping", "tools/list", "tools/call", "notifications/initialized", "x"]
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | st.text(max_size=5) | JSON,
        "method": st.sampled_from(METHODS) | JSON,
        "result": JSON,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["turn", "look", "nothing"]) | JSON,
                "arguments": st.dictionaries(st.sampled_from(["to", "x"]), JSON) | JSON,
                "protocolVersion": st.just("2025-06-18") | JSON,
                "capabilities": st.dictionaries(st.just("experimental"), JSON) | JSON,
            },
        )
        | JSON,
    },
)


@settings(max_examples=100)
@given(message=MESSAGES, has_session=st.booleans())
def test_no_message_makes_the_server_fail(message, has_session: bool):
    async def send() -> httpx.Response:
        async with client_of(create_app(Safe)) as client:
            headers = await session_of(client)
            session = headers if has_session else {"MCP-Protocol-Version": "2025-06-18"}
            body = json.dumps(message).encode()
            answer = await client.post("/mcp", content=body, headers=session)
            ping = await client.post("/mcp", json=request("ping"), headers=headers)
            assert ping.json()["result"] == {}
            return answer

    answer = asyncio.run(send())
    assert answer.status_code in (200, 202, 400, 404)
    if answer.status_code == 202:
        assert answer.content == b""
    else:
        assert {"result", "error"} & set(answer.json())
