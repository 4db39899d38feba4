"""A push to a Space, with the real Hub client against a Hub that runs here."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corral.cli.main import app
from corral.serve.publishing import read_manifest
from support.fake_hub import Hub

TOKEN = "hf_not-a-real-token"


@pytest.fixture
def hub():
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def push(
    hub: Hub, folder: Path, *arguments: str, offline: str = "0"
) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the client reads where the Hub is when it is imported."""
    own = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": offline}
    return subprocess.run(
        [sys.executable, "-m", "corral.cli.main", "push", str(folder), *arguments],
        env={**os.environ, **own, "NO_COLOR": "1", "HF_HOME": str(folder.parent / "hf")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_space_gets_exactly_the_files_that_were_announced(hub: Hub, environment_folder: Path):
    (environment_folder / ".env").write_text("KEY=1", encoding="utf-8")
    with (environment_folder / "openenv.yaml").open("a", encoding="utf-8") as manifest:
        manifest.write("variables:\n  ROUNDS: 3\n")
    ran = push(hub, environment_folder, "--repo-id", "me/demo", "--private", "--json")
    assert ran.returncode == 0, ran.stderr
    (plan,) = [json.loads(line) for line in ran.stdout.splitlines()]
    committed = hub.committed()
    assert {place: len(content) for place, content in committed.items()} == plan["files"]
    source = (environment_folder / "demo" / "environment.py").read_bytes()
    assert committed["demo/environment.py"] == source
    assert ".env" not in committed
    created = json.loads(hub.bodies("/api/repos/create")[0])
    assert (created["sdk"], created["type"]) == ("docker", "space")
    assert created.get("private") is True or created.get("visibility") == "private"
    assert [json.loads(body) for body in hub.bodies("/variables")] == [
        {"key": "ROUNDS", "value": "3"}
    ]
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.stdout + ran.stderr
    assert plan["pushed"].endswith("/spaces/me/demo")


@pytest.mark.report("P203")
def test_a_refusal_of_the_hub_is_one_sentence_with_a_remedy(hub: Hub, environment_folder: Path):
    hub.refuses = True
    ran = push(hub, environment_folder, "--repo-id", "me/demo")
    assert ran.returncode == 1
    assert "did not take the Space 'me/demo'" in ran.stderr
    for told in ("You don't have the rights to create a space.", "HF_TOKEN", "--registry"):
        assert told in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr


def test_a_hub_out_of_reach_is_one_sentence_too(hub: Hub, environment_folder: Path):
    ran = push(hub, environment_folder, "--repo-id", "me/demo", offline="1")
    assert ran.returncode == 1
    assert "did not take the Space" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_the_hub_client_the_extra_that_brings_it_is_named(
    environment_folder: Path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    arguments = ["push", str(environment_folder), "--repo-id", "me/demo"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "pip install 'corral[push]'" in result.stderr
    assert CliRunner().invoke(app, [*arguments, "--dry-run"]).exit_code == 0


def test_a_dry_run_shows_the_page_and_the_files_and_asks_nobody(hub: Hub, environment_folder: Path):
    ran = push(hub, environment_folder, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    for line in ("Space demo (public, Docker):", "  sdk: docker", "  app_port: 8000"):
        assert line in ran.stderr
    assert "demo/environment.py" in ran.stderr
    assert hub.requests == []


def test_a_readme_without_front_matter_gets_one(environment_folder: Path):
    (environment_folder / "README.md").write_text("# Mine\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["push", str(environment_folder), "--dry-run", "--json"])
    plan = json.loads(result.stdout)
    assert "sdk: docker\napp_port: 8000\n" in plan["front_matter"]
    assert plan["files"]["README.md"] > len("# Mine\n")
    assert (environment_folder / "README.md").read_text(encoding="utf-8") == "# Mine\n"


@pytest.mark.parametrize("missing", ["openenv.yaml", "Dockerfile"])
def test_a_folder_that_is_no_environment_is_refused(environment_folder: Path, missing: str):
    (environment_folder / missing).unlink()
    result = CliRunner().invoke(app, ["push", str(environment_folder), "--dry-run"])
    assert result.exit_code == 2
    assert f"no {missing}" in result.stderr


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name: [", "not valid YAML"),
        ("- a list", "name: None"),
        ("name: Has Spaces", "'Has Spaces'"),
        ("name: demo\nport: http", "port"),
        ("name: demo\nvariables: [A]", "variables"),
    ],
)
def test_a_bad_manifest_is_named(environment_folder: Path, text: str, names: str):
    (environment_folder / "openenv.yaml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["push", str(environment_folder), "--dry-run"])
    assert (result.exit_code, names in result.stderr) == (2, True), result.stderr


def test_a_version_stays_as_it_is_written(environment_folder: Path):
    (environment_folder / "openenv.yaml").write_text(
        "name: demo\nversion: 0.10\n", encoding="utf-8"
    )
    assert read_manifest(environment_folder).version == "0.10"


@pytest.mark.report("P203")
def test_a_space_id_that_is_none_is_named(environment_folder: Path):
    arguments = ["push", str(environment_folder), "--repo-id", "a/b/c", "--dry-run"]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, "'a/b/c'" in result.stderr) == (2, True)
