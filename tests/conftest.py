"""Fixtures all tiers share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports the hub's client: no test asks a hub, so none waits for one.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A shell ignores Ctrl-C for what it starts in the background, and children inherit that; tests that
# interrupt processes of their own would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
settings.register_profile("corral", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("corral")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Folder with reference values and the real tokenizer; a test that needs it skips without."""
    folder = Path(os.environ.get("CORRAL_TEST_DATA", ROOT / ".." / "shared")).resolve()
    if not (folder / "golden").is_dir():
        pytest.skip(
            f"no reference data in {folder}: set CORRAL_TEST_DATA to the folder that has it"
        )
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real sockets and processes on a busy machine get a second chance; the summary names them."""
    for item in items:
        tier = item.path.relative_to(ROOT / "tests").parts[0]
        if tier in ("serving", "conformance", "worlds"):
            item.add_marker(pytest.mark.flaky(reruns=1))
