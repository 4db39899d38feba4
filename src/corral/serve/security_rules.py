"""Who may talk to a server: the rules as data, and the questions they answer.

Nothing here knows ASGI; `corral.serve.security` asks these questions when a connection opens.
"""

import hmac
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from corral.errors import UsageError

TOKEN_VARIABLE = "CORRAL_TOKEN"
HOSTS_VARIABLE = "CORRAL_ALLOWED_HOSTS"
ORIGINS_VARIABLE = "CORRAL_ALLOWED_ORIGINS"
PUBLIC_VARIABLE = "CORRAL_ALLOW_PUBLIC"
SHORTEST_TOKEN = 8
MAKE_A_TOKEN = 'python -c "import secrets; print(secrets.token_urlsafe())"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityRules:
    """Who may talk to a server, how much and how often.

    Without a token a server is for this machine: it answers to loopback names and refuses
    connections that arrive at any other address. With a token, or with ``is_public_allowed``,
    it answers everybody who gets that far.
    """

    token: str | None = field(default=None, repr=False)
    """What clients send as ``Authorization: Bearer …`` or ``X-API-Key: …``."""
    is_public_allowed: bool = False
    """Serve other machines although there is no token; somebody else keeps strangers out."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in ``Host`` beside the loopback ones; ``.example.org`` for all below it, ``*`` for any.
    Where none is given, a server with a token takes any, since a token is what a page in a browser
    does not have."""
    allowed_origins: tuple[str, ...] = ()
    """Sites, such as ``https://example.org``, whose pages may talk to the server from a browser."""
    max_body_bytes: int = 16 * 1024 * 1024
    requests_per_s: float | None = 1000.0
    """Requests and connections of one address, with twice as many at once; None for no limit.
    Clients on this machine have none."""

    def __post_init__(self) -> None:
        if self.token is not None:
            check_token(self.token)
        if self.max_body_bytes < 1:
            raise UsageError(f"max_body_bytes={self.max_body_bytes}: give at least 1.")
        if self.requests_per_s is not None and not self.requests_per_s > 0:
            raise UsageError(
                f"requests_per_s={self.requests_per_s}: give a number above 0, or None for no limit"
            )
        for origin in self.allowed_origins:
            if origin != "*" and not _is_origin(origin):
                raise UsageError(
                    f"allowed_origins has {origin!r}. Write scheme and name, without a path: "
                    "https://example.org"
                )


def rules_from_environment(environ: Mapping[str, str] = os.environ) -> SecurityRules:
    """The rules that the variables ``CORRAL_TOKEN``, … set; an empty one counts as not set."""
    return SecurityRules(
        token=environ.get(TOKEN_VARIABLE) or None,
        is_public_allowed=environ.get(PUBLIC_VARIABLE, "").lower() in ("1", "true", "yes"),
        allowed_hosts=_listed(environ.get(HOSTS_VARIABLE, "")),
        allowed_origins=_listed(environ.get(ORIGINS_VARIABLE, "")),
    )


def check_token(token: str) -> None:
    """Check that ``token`` can be sent in a header and is not guessed at once.

    Raises:
        UsageError: It cannot; the message does not repeat the token.
    """
    if len(token) < SHORTEST_TOKEN:
        raise UsageError(
            f"The token has {len(token)} characters; take at least {SHORTEST_TOKEN}. "
            f"Make one with: {MAKE_A_TOKEN}"
        )
    if not all("!" <= character <= "~" for character in token):
        raise UsageError(
            "The token has a space or a character that no header can carry. "
            f"Make one with: {MAKE_A_TOKEN}"
        )


def check_bind(host: str, rules: SecurityRules) -> None:
    """Check that a server with these rules may listen on ``host``.

    Raises:
        UsageError: Other machines could reach it and it has no token; the message names both ways.
    """
    if is_loopback(host) or rules.token is not None or rules.is_public_allowed:
        return
    raise UsageError(
        f"The address {host or '(all interfaces)'!r} can be reached from other machines, and the "
        f"server has no token. Set one in {TOKEN_VARIABLE}, bind to 127.0.0.1, or, where something "
        f"else keeps strangers out, set {PUBLIC_VARIABLE}=1."
    )


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether ``host`` surely is this machine: ``localhost``, ``127.…``, ``::1``.

    Compared as a whole, so that ``localhost.evil.com`` is not; and written out, so that ``127.1``,
    which not every program reads alike, is not either.
    """
    name = host.lower().removesuffix(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if name == "localhost":
        return True
    address = _address(name)
    if address is None:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_token(rules: SecurityRules, given: list[bytes]) -> bool:
    """Whether one of ``given`` is the token, in a time that tells nothing about it."""
    expected = (rules.token or "").encode()
    matches = [hmac.compare_digest(candidate, expected) for candidate in given]
    return rules.token is None or any(matches)


def is_host_allowed(rules: SecurityRules, header: str | None) -> bool:
    """Whether a request with this ``Host`` is meant for this server.

    A page in a browser can make its own name point to this machine and then talk to whatever
    listens here; the name in ``Host`` gives it away.
    """
    if not rules.allowed_hosts and rules.token is not None:
        return True
    name = _host_name(header)
    if name is None:
        return "*" in rules.allowed_hosts
    if is_loopback(name) or any(_covers(allowed, name) for allowed in rules.allowed_hosts):
        return True
    return rules.is_public_allowed and not rules.allowed_hosts and _is_unclaimable(name)


def is_origin_allowed(rules: SecurityRules, origin: str | None, host: str | None) -> bool:
    """Whether a page of ``origin`` may talk to the server; programs send no origin."""
    if origin is None or "*" in rules.allowed_origins or origin in rules.allowed_origins:
        return True
    if not _is_origin(origin) or host is None:
        return False
    parts = urlsplit(origin)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return parts.netloc.lower().removesuffix(default_port) == host.lower().removesuffix(
        default_port
    )


def _is_unclaimable(name: str) -> bool:
    """Whether no stranger can make ``name`` point here: an address, or the name of a neighbour."""
    space = os.environ.get("SPACE_HOST")  # where a Hugging Face Space is reached
    return _address(name) is not None or "." not in name or name == space


def _covers(allowed: str, name: str) -> bool:
    allowed = allowed.lower()
    if allowed.startswith("."):
        return name.endswith(allowed)
    return allowed in ("*", name)


def _host_name(header: str | None) -> str | None:
    """The name in a ``Host`` header, without port and brackets; None if there is no sane one."""
    if not header or any(character in header for character in "@/\\?# ,"):
        return None
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        port = port.removeprefix(":")
        if not bracket or _address(name) is None:
            return None
    else:
        name, _, port = header.partition(":")
    if port and not port.isdecimal():
        return None
    return name.lower().removesuffix(".") or None


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    rest = (parts.path, parts.query, parts.fragment)
    return bool(parts.scheme and parts.netloc) and "@" not in parts.netloc and not any(rest)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
