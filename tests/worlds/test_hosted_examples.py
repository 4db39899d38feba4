"""Examples of worlds in virtual environments of their own run for two steps."""

from pathlib import Path

import pytest

from corral.serve.ports import free_port
from support.examples import HOSTED, SMALL, run, skip_without
from support.served_command import serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(600),
]

OPTIONS = {
    "grpo_browsergym": ["--accumulation", "4"],
    "grpo_carla": ["--accumulation", "1", "--scenario", "fewer_harmed"],
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder_with_few_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("corral.recipes.scratch.SAMPLE_GAMES", 8)  # a page takes most of a second


@pytest.mark.parametrize("name", HOSTED)
def test_an_example_runs(name: str, monkeypatch: pytest.MonkeyPatch):
    skip_without(HOSTED[name])
    steps = run(name, [*SMALL, *OPTIONS[name]], monkeypatch)
    assert len(steps) == 2
    assert all(step["reward"] is not None for step in steps)
    assert Path("run/model").is_dir()


def test_driving_is_played_on_a_server(monkeypatch: pytest.MonkeyPatch):
    skip_without("driving")
    port = free_port()
    with serving(["corral", "serve", "driving", "--port", str(port)], port) as url:
        steps = run("grpo_carla", [*SMALL, *OPTIONS["grpo_carla"], "--url", url], monkeypatch)
    assert len(steps) == 2
    assert "rewards/safe/mean" in steps[0]
