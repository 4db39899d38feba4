"""``corral serve``: what it refuses before anything listens."""

import pytest
from typer.testing import CliRunner

from corral.cli.main import app
from corral.errors import UsageError


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_public_address_needs_a_token_or_consent(host: str, monkeypatch) -> None:
    from corral.serve.running import ServeOptions, serve
    from corral.serve.security_rules import SecurityRules

    options = ServeOptions(env="guess_number", host=host)
    with pytest.raises(UsageError, match="no token"):
        serve(options, SecurityRules())
    monkeypatch.delenv("CORRAL_TOKEN", raising=False)
    result = CliRunner().invoke(app, ["serve", "guess_number", "--host", host])
    assert result.exit_code == 2


def test_an_unknown_world_is_named() -> None:
    result = CliRunner().invoke(app, ["serve", "nope"])
    assert result.exit_code == 2
    assert "nope" in result.output


def test_the_workers_share_the_sessions() -> None:
    from corral.serve.running import ServeOptions, app_of
    from corral.serve.security_rules import SecurityRules

    served = app_of(ServeOptions(env="guess_number", max_sessions=9, workers=2), SecurityRules())
    assert served.state.sessions.slots.max_sessions == 5
    assert served.state.sessions.kind.tasks is not None
