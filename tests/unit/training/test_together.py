"""Waiting for dead infrastructure, and what is not waited for."""

import logging
from typing import Any

import pytest

from corral.errors import InfrastructureFault, UsageError
from corral.training import together
from corral.training.together import play_together


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were made; the clock of the module runs by them alone."""
    made: list[float] = []
    monkeypatch.setattr(together.time, "sleep", made.append)
    monkeypatch.setattr(together.time, "monotonic", lambda: sum(made))
    return made


def fails(times: int, error: Exception) -> Any:
    left = [error] * times

    def play() -> str:
        if left:
            raise left.pop()
        return "played"

    return play


def test_everything_is_played_again_until_the_infrastructure_is_back(
    pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert play_together(fails(6, InfrastructureFault("down")), patience_s=600) == "played"
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert "InfrastructureFault: down Everything is played again in 5 s." in caplog.text


def test_patience_has_an_end(pauses: list[float]) -> None:
    with pytest.raises(InfrastructureFault, match="down"):
        play_together(fails(99, InfrastructureFault("down")), patience_s=60)
    assert sum(pauses) <= 60


def test_wrong_use_is_not_waited_for(pauses: list[float]) -> None:
    with pytest.raises(UsageError, match="reward"):
        play_together(fails(1, UsageError("reward")), patience_s=600)
    assert pauses == []
