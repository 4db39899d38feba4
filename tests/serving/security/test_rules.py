import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import UsageError
from corral.serve.security_rules import (
    SecurityRules,
    check_bind,
    is_host_allowed,
    is_loopback,
    is_origin_allowed,
    is_token,
    rules_from_environment,
)

TOKEN = "correct-horse-battery"
LOOPBACK = ["localhost", "LocalHost", "localhost.", "127.0.0.1", "127.8.9.1", "::1", "[::1]"]
NOT_LOOPBACK = [
    "localhost.evil.com",
    "evil.localhost.com",
    "127.0.0.1.evil.com",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "0.0.0.0",
    "::",
    "",
    "10.0.0.1",
    "user@localhost",
    "localhost:80@evil.com",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_this_machine_is_recognised(host: str):
    assert is_loopback(host)


@pytest.mark.report("P216")
@pytest.mark.parametrize("host", NOT_LOOPBACK)
def test_what_only_looks_like_this_machine_is_not_it(host: str):
    assert not is_loopback(host)


def test_an_ipv4_address_in_ipv6_clothes_is_judged_by_what_it_is():
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:10.0.0.1")


@pytest.mark.parametrize("host", LOOPBACK)
def test_binding_to_this_machine_needs_no_token(host: str):
    check_bind(host, SecurityRules())


@pytest.mark.report("P212")
@pytest.mark.parametrize("host", [*NOT_LOOPBACK, "example.org"])
def test_a_public_bind_without_a_token_is_refused_and_names_the_ways_out(host: str):
    with pytest.raises(UsageError, match=r"CORRAL_TOKEN.*127\.0\.0\.1.*CORRAL_ALLOW_PUBLIC"):
        check_bind(host, SecurityRules())


def test_a_public_bind_needs_a_token_or_the_flag():
    check_bind("0.0.0.0", SecurityRules(token=TOKEN))
    check_bind("0.0.0.0", SecurityRules(is_public_allowed=True))


@pytest.mark.parametrize(
    ("header", "is_allowed"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("localhost.evil.com", False),
        ("evil.com", False),
        ("127.1", False),
        ("0.0.0.0:8000", False),
        ("user@localhost", False),
        ("localhost@evil.com", False),
        ("localhost:evil", False),
        ("[::1", False),
        ("[::1].evil.com", False),
        ("localhost, evil.com", False),
        ("", False),
        (None, False),
    ],
)
def test_without_a_token_only_names_of_this_machine_are_served(header, is_allowed: bool):
    assert is_host_allowed(SecurityRules(), header) is is_allowed


@pytest.mark.report("P219")
def test_with_a_token_any_name_is_served_unless_names_are_listed():
    assert is_host_allowed(SecurityRules(token=TOKEN), "tunnel.example.net")
    listed = SecurityRules(token=TOKEN, allowed_hosts=("env.example.org",))
    assert is_host_allowed(listed, "ENV.example.org:443")
    assert not is_host_allowed(listed, "tunnel.example.net")


def test_a_listed_domain_covers_what_is_below_it_and_nothing_beside_it():
    rules = SecurityRules(allowed_hosts=(".example.org",))
    assert is_host_allowed(rules, "a.example.org")
    assert not is_host_allowed(rules, "evilexample.org")
    assert not is_host_allowed(rules, "example.org.evil.com")
    assert is_host_allowed(SecurityRules(allowed_hosts=("*",)), None)


def test_an_open_server_is_reached_by_names_that_no_stranger_can_own(monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "owner-name.hf.space")
    rules = SecurityRules(is_public_allowed=True)
    for name in ("10.0.0.1:8000", "[fd00::1]", "env:8000", "localhost", "owner-name.hf.space"):
        assert is_host_allowed(rules, name), name
    assert not is_host_allowed(rules, "rebound.evil.com")


@pytest.mark.parametrize(
    ("origin", "host", "is_allowed"),
    [
        (None, "localhost:8000", True),
        ("http://localhost:8000", "localhost:8000", True),
        ("https://env.example.org", "env.example.org:443", True),
        ("http://localhost:3000", "localhost:8000", False),
        ("http://localhost.evil.com", "localhost", False),
        ("https://evil.com", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("", "localhost:8000", False),
        ("http://localhost:8000@evil.com", "localhost:8000", False),
        ("https://tools.example.org", "localhost:8000", True),
    ],
)
def test_only_pages_of_the_server_itself_and_of_listed_sites_may_talk(origin, host, is_allowed):
    rules = SecurityRules(allowed_origins=("https://tools.example.org",))
    assert is_origin_allowed(rules, origin, host) is is_allowed


def test_the_token_is_compared_as_a_whole():
    rules = SecurityRules(token=TOKEN)
    assert is_token(rules, [b"other", TOKEN.encode()])
    for wrong in (b"", TOKEN[:-1].encode(), TOKEN.encode() + b"x", "ü".encode("latin-1")):
        assert not is_token(rules, [wrong])
    assert not is_token(rules, [])
    assert is_token(SecurityRules(), [])


@pytest.mark.parametrize("token", ["short", "with space in it", "two\nlines", "schlüssel-wort"])
def test_a_bad_token_is_refused_without_being_repeated(token: str):
    with pytest.raises(UsageError) as caught:
        SecurityRules(token=token)
    assert token not in str(caught.value)


def test_the_token_is_not_in_what_is_logged_about_the_rules():
    assert TOKEN not in repr(SecurityRules(token=TOKEN))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"max_body_bytes": 0}, "max_body_bytes=0"),
        ({"requests_per_s": 0.0}, "requests_per_s=0.0"),
        ({"allowed_origins": ("example.org",)}, "'example.org'"),
        ({"allowed_origins": ("https://example.org/path",)}, "path"),
    ],
)
def test_a_rule_that_makes_no_sense_is_named(options: dict, names: str):
    with pytest.raises(UsageError, match=names):
        SecurityRules(**options)


def test_rules_come_from_the_environment_and_an_empty_variable_is_no_token():
    assert rules_from_environment({"CORRAL_TOKEN": ""}) == SecurityRules()
    assert rules_from_environment(
        {
            "CORRAL_TOKEN": TOKEN,
            "CORRAL_ALLOWED_HOSTS": "a.org, .b.org",
            "CORRAL_ALLOWED_ORIGINS": "https://c.org",
            "CORRAL_ALLOW_PUBLIC": "1",
        }
    ) == SecurityRules(
        token=TOKEN,
        allowed_hosts=("a.org", ".b.org"),
        allowed_origins=("https://c.org",),
        is_public_allowed=True,
    )


PIECES = ["localhost", "127.0.0.1", "[::1]", "[", "]", ":", "@", "/", "http://", ".", "evil.com"]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=6).map("".join)


@given(host=TEXTS, origin=TEXTS)
def test_no_header_is_too_strange_to_be_judged(host: str, origin: str):
    rules = SecurityRules()
    if is_host_allowed(rules, host):
        assert is_loopback(re.sub(r":\d*$", "", host))
    if is_origin_allowed(rules, origin, host):
        assert host.lower() in f"{origin.lower()}:80 {origin.lower()}:443"
