import logging
import time

import httpx
import pytest
import websockets

from corral.serve.security import SecurityMiddleware
from corral.serve.security_rules import SecurityRules
from support.asgi_scopes import refused, scope_of

TOKEN = "correct-horse-battery"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def test_a_request_without_the_token_is_refused_as_json_and_with_it_served(served):
    async with served(SecurityRules(token=TOKEN)) as address, httpx.AsyncClient() as client:
        answer = await client.post(f"http://{address}/reset")
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
        assert answer.headers["www-authenticate"] == "Bearer"
        for headers in (BEARER, {"authorization": f"bearer {TOKEN}"}, {"X-API-Key": TOKEN}):
            assert (await client.post(f"http://{address}/reset", headers=headers)).is_success
        wrong = {"Authorization": f"Basic {TOKEN}"}
        assert (await client.post(f"http://{address}/", headers=wrong)).status_code == 401
        assert (await client.get(f"http://{address}/health")).is_success


async def test_a_websocket_without_the_token_is_refused_at_the_handshake(served):
    async with served(SecurityRules(token=TOKEN)) as address:
        with pytest.raises(websockets.InvalidStatus) as caught:
            await websockets.connect(f"ws://{address}/ws", proxy=None)
        assert caught.value.response.status_code == 401
        async with websockets.connect(
            f"ws://{address}/ws", additional_headers=BEARER, proxy=None
        ) as socket:
            await socket.send("hello")
            assert await socket.recv() == "hello"


async def test_a_page_of_another_site_can_neither_connect_nor_post(served):
    async with served(SecurityRules()) as address, httpx.AsyncClient() as client:
        with pytest.raises(websockets.InvalidStatus) as caught:
            await websockets.connect(f"ws://{address}/ws", origin="https://evil.com", proxy=None)
        assert caught.value.response.status_code == 403
        answer = await client.post(f"http://{address}/", headers={"Origin": "https://evil.com"})
        assert (answer.status_code, answer.json()["code"]) == (403, "ORIGIN_NOT_ALLOWED")
        same = await client.post(f"http://{address}/", headers={"Origin": f"http://{address}"})
        assert same.is_success


async def test_a_name_that_was_made_to_point_here_is_refused(served):
    async with served(SecurityRules()) as address, httpx.AsyncClient() as client:
        name, _, port = address.partition(":")
        answer = await client.get(f"http://{address}/", headers={"Host": "localhost.evil.com"})
        assert (answer.status_code, answer.json()["code"]) == (421, "HOST_NOT_ALLOWED")
        assert "CORRAL_ALLOWED_HOSTS" in answer.json()["detail"]
        with pytest.raises(websockets.InvalidStatus) as caught:
            await websockets.connect("ws://evil.com/ws", host=name, port=int(port), proxy=None)
        assert caught.value.response.status_code == 421


async def test_a_listed_site_may_ask_before_it_sends_and_is_let_in_with_the_token(served):
    site = "https://tools.example.org"
    rules = SecurityRules(token=TOKEN, allowed_origins=(site,))
    question = {
        "Origin": site,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with served(rules) as address, httpx.AsyncClient() as client:
        preflight = await client.options(f"http://{address}/mcp", headers=question)
        assert preflight.headers["access-control-allow-origin"] == site
        answer = await client.post(f"http://{address}/mcp", headers={"Origin": site, **BEARER})
        assert answer.headers["access-control-allow-origin"] == site
        assert (await client.options(f"http://{address}/mcp")).status_code == 401


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
async def test_a_body_is_read_up_to_the_limit(served, is_chunked: bool):
    async def chunks(size: int):
        for start in range(0, size, 300):
            yield b"x" * min(300, size - start)

    def body(size: int):
        return chunks(size) if is_chunked else b"x" * size

    rules = SecurityRules(max_body_bytes=1000)
    async with served(rules) as address, httpx.AsyncClient() as client:
        fits = await client.post(f"http://{address}/", content=body(1000))
        assert fits.json() == {"size": 1000}
        answer = await client.post(f"http://{address}/", content=body(1001))
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


async def test_a_server_without_a_token_refuses_what_arrives_at_a_public_address():
    arrived = scope_of(server=("192.0.2.7", 8000), headers={"host": "192.0.2.7:8000"})
    assert await refused(SecurityRules(), arrived) == (403, "NOT_PUBLIC")
    assert await refused(SecurityRules(is_public_allowed=True), arrived) is None
    for server in (("127.0.0.1", 8000), ("::1", 8000), ("/run/env.sock", None), None):
        assert await refused(SecurityRules(), scope_of(server=server)) is None


async def test_a_test_client_is_served_whatever_it_calls_the_app():
    in_process = scope_of(server=("testserver", 80), headers={"host": "testserver"})
    assert await refused(SecurityRules(), in_process) is None
    assert await refused(SecurityRules(token=TOKEN), in_process) == (401, "UNAUTHORIZED")
    for address in ("192.0.2.7", "2001:db8::7"):
        arrived = scope_of(server=(address, 80), headers={"host": "testserver"})
        assert await refused(SecurityRules(), arrived) == (403, "NOT_PUBLIC")
    for local in (("127.0.0.1", 80), ("/run/env.sock", None)):
        arrived = scope_of(server=local, headers={"host": "testserver"})
        assert await refused(SecurityRules(), arrived) == (421, "HOST_NOT_ALLOWED")


async def test_too_many_requests_of_one_address_are_told_when_to_come_again():
    middleware_rules = SecurityRules(is_public_allowed=True, requests_per_s=1.0)
    middleware = SecurityMiddleware(_never_reached, middleware_rules)
    far = scope_of(client=("192.0.2.9", 1), headers={"host": "evil.example"})  # refused by name
    statuses = [(await refused(middleware, far))[0] for _ in range(3)]
    assert statuses == [421, 421, 429]
    near = scope_of(client=("127.0.0.1", 1), headers={"host": "evil.example"})
    assert [(await refused(middleware, near))[0] for _ in range(5)] == [421] * 5


async def test_guessing_tokens_costs_more_than_asking():
    middleware = SecurityMiddleware(_never_reached, SecurityRules(token=TOKEN, requests_per_s=60.0))
    far = scope_of(client=("192.0.2.9", 1), headers={"x-api-key": "wrong-wrong"})
    statuses = [(await refused(middleware, far))[0] for _ in range(4)]
    assert statuses == [401, 401, 429, 429]


async def test_no_secret_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    scope = scope_of(headers={"authorization": "Bearer some-other-secret", "x-api-key": "s3cr3t-2"})
    assert await refused(SecurityRules(token=TOKEN), scope) == (401, "UNAUTHORIZED")
    assert "UNAUTHORIZED" in caplog.text
    assert not any(text in caplog.text for text in (TOKEN, "some-other-secret", "s3cr3t-2"))


async def test_messages_of_a_websocket_do_not_pass_through_the_middleware():
    seen = []

    async def app(scope, receive, send) -> None:
        seen.append((receive, send))

    async def receive():
        raise AssertionError("not asked")

    async def send(message):
        raise AssertionError("not asked")

    middleware = SecurityMiddleware(app, SecurityRules(token=TOKEN))
    scope = scope_of(kind="websocket", headers={"x-api-key": TOKEN})
    started = time.perf_counter()
    for _ in range(1000):
        await middleware(scope, receive, send)
    each_s = (time.perf_counter() - started) / 1000
    assert seen[0] == (receive, send)
    assert each_s < 1e-3  # a hundredth of that on an idle machine


async def _never_reached(scope, receive, send) -> None:
    raise AssertionError("let in")
