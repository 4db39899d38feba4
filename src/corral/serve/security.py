"""The door of a server: who may come in is decided when a connection opens, never per message."""

import logging
import math
import re
from dataclasses import dataclass, field
from typing import Any, cast

from corral.serve.asgi import App, Message, Receive, Scope, Send
from corral.serve.close_codes import CloseCode
from corral.serve.json_http import send_json
from corral.serve.rate_limit import RateLimiter
from corral.serve.security_rules import (
    HOSTS_VARIABLE,
    ORIGINS_VARIABLE,
    PUBLIC_VARIABLE,
    TOKEN_VARIABLE,
    SecurityRules,
    is_host_allowed,
    is_loopback,
    is_origin_allowed,
    is_token,
    rules_from_environment,
)

logger = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/health"})
"""Answered without a token: whoever starts a server asks there whether it runs."""
COST_OF_A_WRONG_TOKEN = 100.0
"""In requests: a thousandth of the guesses that the limit of requests alone would let through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why somebody is not let in."""

    status: int
    code: str
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())


class SecurityMiddleware:
    """Lets in who the rules let in, as a layer around any ASGI app.

    ::

        app = SecurityMiddleware(app, rules=SecurityRules(token=os.environ["CORRAL_TOKEN"]))

    Refusals are JSON with ``detail`` and ``code``; a WebSocket is refused before its handshake.
    """

    def __init__(self, app: App, rules: SecurityRules | None = None) -> None:
        self._rules = rules_from_environment() if rules is None else rules
        self._app = _with_cors(app, self._rules) if self._rules.allowed_origins else app
        rate = self._rules.requests_per_s
        self._limiter = None if rate is None else RateLimiter(per_s=rate, burst=2 * rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the connection on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _read_headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["type"] == "http":
            receive, refusal = await self._limited(headers, receive)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        logger.info("%s of %s refused: %s", scope.get("path"), _client(scope), refusal.code)
        if scope["type"] == "http":
            await _answer(send, refusal, "http.response")
        elif "websocket.http.response" in scope.get("extensions", {}):
            await _answer(send, refusal, "websocket.http.response")
        else:
            await send(
                {
                    "type": "websocket.close",
                    "code": int(CloseCode.WRONG_TOKEN),
                    "reason": refusal.code,
                }
            )

    def _refusal(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        """Why this connection may not come in; None if it may."""
        rules = self._rules
        client = _client(scope)
        limiter = None if is_loopback(client) else self._limiter
        if limiter is not None and (wait_s := limiter.take(client)) > 0.0:
            return _too_many(wait_s)
        if not (rules.token or rules.is_public_allowed) and _is_from_elsewhere(scope):
            return _NOT_PUBLIC
        host = _only(headers, b"host")
        if not (_is_without_network(scope) or is_host_allowed(rules, host)):
            return _wrong_host(host)
        origin = _only(headers, b"origin")
        if not is_origin_allowed(rules, origin, host):
            return _wrong_origin(origin)
        is_open = scope.get("path") in OPEN_PATHS or _is_preflight(scope, headers, rules)
        if not is_open and not is_token(rules, _tokens(headers)):
            if limiter is not None:
                limiter.charge(client, COST_OF_A_WRONG_TOKEN)
            return _NO_TOKEN
        return None

    async def _limited(
        self, headers: dict[bytes, list[bytes]], receive: Receive
    ) -> tuple[Receive, Refusal | None]:
        """The way to read a body of bearable size; one of unknown size is read here."""
        limit = self._rules.max_body_bytes
        length = _only(headers, b"content-length")
        if length is not None and length.isdecimal():
            return receive, _too_large(limit) if int(length) > limit else None
        if b"transfer-encoding" not in headers:
            return receive, None
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return _replaying(message, receive), None  # the client left
            body += message.get("body", b"")
            if len(body) > limit:
                return receive, _too_large(limit)
            if not message.get("more_body", False):
                whole = {"type": "http.request", "body": bytes(body), "more_body": False}
                return _replaying(whole, receive), None


_NO_TOKEN = Refusal(
    status=401,
    code="UNAUTHORIZED",
    detail="This server wants its token: send it as 'Authorization: Bearer …' or 'X-API-Key: …'.",
    headers=((b"www-authenticate", b"Bearer"),),
)
_NOT_PUBLIC = Refusal(
    status=403,
    code="NOT_PUBLIC",
    detail="This server has no token and serves only its own machine. Whoever runs it can set "
    f"{TOKEN_VARIABLE}, or {PUBLIC_VARIABLE}=1 where something else keeps strangers out.",
)


def _too_many(wait_s: float) -> Refusal:
    seconds = math.ceil(wait_s)
    return Refusal(
        status=429,
        code="TOO_MANY_REQUESTS",
        detail=f"Too many requests from this address. Come again in {seconds} s.",
        headers=((b"retry-after", str(seconds).encode()),),
    )


def _too_large(limit: int) -> Refusal:
    return Refusal(
        status=413,
        code="BODY_TOO_LARGE",
        detail=f"The body is larger than the {limit} bytes that this server reads.",
        headers=((b"connection", b"close"),),
    )


def _wrong_host(host: str | None) -> Refusal:
    return Refusal(
        status=421,
        code="HOST_NOT_ALLOWED",
        detail=f"This server is not called {(host or '')[:200]!r}. Behind a proxy or a tunnel, "
        f"list the name in {HOSTS_VARIABLE}.",
    )


def _wrong_origin(origin: str | None) -> Refusal:
    return Refusal(
        status=403,
        code="ORIGIN_NOT_ALLOWED",
        detail=f"Pages of {(origin or '')[:200]!r} may not talk to this server. To let them, list "
        f"the origin in {ORIGINS_VARIABLE}.",
    )


async def _answer(send: Send, refusal: Refusal, message: str) -> None:
    content = {"detail": refusal.detail, "code": refusal.code}
    await send_json(send, refusal.status, content, refusal.headers, message=message)


def _replaying(first: Message, receive: Receive) -> Receive:
    waiting = [first]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _with_cors(app: App, rules: SecurityRules) -> App:
    from starlette.middleware.cors import CORSMiddleware

    return CORSMiddleware(
        cast("Any", app),
        allow_origins=rules.allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id"],
    )


def _is_preflight(scope: Scope, headers: dict[bytes, list[bytes]], rules: SecurityRules) -> bool:
    """Whether a browser asks for a page what it may send; browsers ask that without a token."""
    is_question = scope["type"] == "http" and scope["method"] == "OPTIONS"
    return (
        is_question
        and bool(rules.allowed_origins)
        and (b"origin" in headers and b"access-control-request-method" in headers)
    )


def _is_from_elsewhere(scope: Scope) -> bool:
    """Whether the connection arrived at an address that other machines can reach."""
    server = scope.get("server")
    if not server or server[1] is None or _is_without_network(scope):
        return False  # a socket file, or no network at all
    return not is_loopback(server[0])


def _is_without_network(scope: Scope) -> bool:
    """Whether a test client calls the app directly: it has a name where servers have an address."""
    server = scope.get("server")
    return bool(server) and not re.fullmatch(r"[0-9.]+|.*[:/].*", server[0])


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "localhost"


def _read_headers(scope: Scope) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def _only(headers: dict[bytes, list[bytes]], name: bytes) -> str | None:
    """The header if it comes once; what comes twice is given as one that nothing allows."""
    values = headers.get(name)
    return None if values is None else b", ".join(values).decode("latin-1")


def _tokens(headers: dict[bytes, list[bytes]]) -> list[bytes]:
    """What the client offers as token."""
    offered = list(headers.get(b"x-api-key", ()))
    for value in headers.get(b"authorization", ()):
        scheme, _, token = value.partition(b" ")
        if scheme.lower() == b"bearer":
            offered.append(token.strip())
    return offered
