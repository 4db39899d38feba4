"""From the URL a user writes to the URLs that are opened."""

import pytest

from corral.errors import UsageError
from corral.serve.client.address import address_of, is_loopback
from corral.serve.client.launchers import Space


@pytest.mark.parametrize(
    ("base_url", "socket", "health"),
    [
        ("http://h", "ws://h/ws", "http://h/health"),
        ("http://h/", "ws://h/ws", "http://h/health"),
        ("https://h:8/a/b/", "wss://h:8/a/b/ws", "https://h:8/a/b/health"),
        ("ws://h:8000", "ws://h:8000/ws", "http://h:8000/health"),
        ("wss://h/p", "wss://h/p/ws", "https://h/p/health"),
        ("ws://h/ws", "ws://h/ws", "http://h/health"),
        ("http://[::1]:8000", "ws://[::1]:8000/ws", "http://[::1]:8000/health"),
        ("HTTP://H:1", "ws://H:1/ws", "http://H:1/health"),
        ("http://me:pass@h:1", "ws://me:pass@h:1/ws", "http://me:pass@h:1/health"),
    ],
)
def test_urls_are_derived_from_the_base(base_url: str, socket: str, health: str):
    address = address_of(base_url)
    assert address.websocket("/ws") == socket
    assert address.http("/health") == health


def test_a_query_is_quoted():
    assert address_of("http://h").websocket("/ws", session_id="a&b c") == (
        "ws://h/ws?session_id=a%26b%20c"
    )


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "h:8000",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://h?x=1",
        "http://h#y",
        "http://a b",
    ],
)
def test_what_is_no_base_url_is_refused_with_a_remedy(base_url: str):
    with pytest.raises(UsageError, match=r"Write, for example|Leave out"):
        address_of(base_url)


@pytest.mark.report("P216")
@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.1", True),
        ("127.9.9.9", True),
        ("0.0.0.0", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost.evil.com", False),
        ("127.0.0.1.evil.com", False),
        ("evil-localhost", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("2001:db8::1", False),
    ],
)
def test_loopback_is_told_by_the_whole_name(host: str, is_local: bool):
    assert is_loopback(host) is is_local


@pytest.mark.report("P216")
def test_userinfo_does_not_make_a_host_local():
    assert not address_of("http://localhost:80@evil.com").is_local
    assert "secret" not in str(address_of("http://me:secret@evil.com"))


def test_a_space_has_a_url_and_an_image():
    space = Space("Some-Owner/my_env.v2")
    assert space.url == "https://some-owner-my-env-v2.hf.space"
    assert space.image("v1") == "registry.hf.space/some-owner-my-env-v2:v1"
    with pytest.raises(UsageError, match="owner/name"):
        Space("name")
