"""Servers in processes of their own, shared by the tests of this tier."""

import pytest

from corral.serve.check import Probes

pytest.importorskip("openenv", reason="the official package is not installed")


@pytest.fixture(scope="session")
def probes() -> dict[str, Probes]:
    """Actions that make the test worlds show what a derived action does not."""
    return {
        "probe": Probes(
            failing={"message": "boom"},
            slow={"message": "slow 1.0"},
            large={"message": "large"},
            breaking={"message": "break"},
        ),
        "tools": Probes(),
        "walk": Probes(),
        "broken": Probes(
            failing={"tool_name": "explode"},
            slow={"tool_name": "slow"},
            breaking={"tool_name": "break"},
        ),
    }
