"""Where a server is: from the URL a user writes to the URLs that are opened."""

import ipaddress
import re
import socket
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from corral.errors import UsageError

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server's base URL, taken apart.

    ::

        address_of("https://host/prefix/").websocket("/ws")    # "wss://host/prefix/ws"
    """

    scheme: str
    """``http`` or ``https``."""
    netloc: str
    """Host and port, a user and password in front if the URL has them."""
    host: str
    path: str
    """The prefix under which the server lives, without a slash at its end."""

    def http(self, path: str) -> str:
        """The URL of an HTTP route."""
        return f"{self.scheme}://{self.netloc}{self.path}{path}"

    def websocket(self, path: str = "/ws", **query: str) -> str:
        """The URL of a WebSocket route."""
        scheme = _WEBSOCKET_SCHEMES[self.scheme]
        asked = f"?{urlencode(query, quote_via=quote)}" if query else ""
        return f"{scheme}://{self.netloc}{self.path}{path}{asked}"

    @property
    def is_local(self) -> bool:
        """Whether the host is this machine; it is then never reached through a proxy."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        shown = replace(self, netloc=self.netloc.rpartition("@")[2])  # never a password
        return shown.http("")


def address_of(base_url: str) -> Address:
    """Take a base URL apart.

    Raises:
        UsageError: It is no ``http``, ``https``, ``ws`` or ``wss`` URL with a host.
    """
    text = base_url.strip()
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"base_url={base_url!r} is no URL: {error}. {_REMEDY}") from error
    if parts.scheme.lower() not in _HTTP_SCHEMES or not host or re.search(r"\s", text):
        raise UsageError(f"base_url={base_url!r} is no URL of a server. {_REMEDY}")
    if parts.query or parts.fragment:
        raise UsageError(
            f"base_url={base_url!r} has a query or fragment, which a base URL cannot have. "
            f"Leave out {_after_path(parts)!r}."
        )
    return Address(
        scheme=_HTTP_SCHEMES[parts.scheme.lower()],
        netloc=parts.netloc,
        host=host,
        path=_prefix(parts.path),
    )


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own.

    By the whole name, never a part of it: ``localhost.example.com`` is somebody else's machine.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        if re.fullmatch(r"[0-9.]+", name):
            address = ipaddress.ip_address(socket.inet_aton(name))  # 127.1 is 127.0.0.1
        else:
            address = ipaddress.ip_address(name.partition("%")[0])
    except (ValueError, OSError):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


_REMEDY = "Write, for example: http://127.0.0.1:8000 or https://owner-name.hf.space"


def _prefix(path: str) -> str:
    # Users paste the URL of the socket itself as often as that of the server.
    stripped = path.rstrip("/")
    return stripped.removesuffix("/ws") if stripped.endswith("/ws") else stripped


def _after_path(parts: SplitResult) -> str:
    query = f"?{parts.query}" if parts.query else ""
    return query + (f"#{parts.fragment}" if parts.fragment else "")
