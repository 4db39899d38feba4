"""Images are built by whatever ``docker`` is on the path; here it is a program that takes notes."""

import json
import os
import stat
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corral.cli.main import app

DOCKER = """#!{python}
import json, os, sys
folder = os.environ["NOTES"]
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == os.environ.get("FAILS_AT"):
    sys.exit("no space left on device")
if sys.argv[1] == "build":
    with open(folder + "/context.tar", "wb") as context:
        context.write(sys.stdin.buffer.read())
print("Successfully did", sys.argv[1])
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch) -> Path:
    """The folder with the notes of the program that is called ``docker``."""
    notes = tmp_path / "notes"
    notes.mkdir()
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER.format(python=sys.executable), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(notes))
    return notes


def calls(docker: Path) -> list[list[str]]:
    if not (docker / "calls").exists():
        return []
    return [json.loads(line) for line in (docker / "calls").read_text().splitlines()]


def push(*arguments: str):
    return CliRunner().invoke(app, ["push", *arguments])


def test_an_image_is_built_from_the_files_that_were_announced(environment_folder, docker):
    (environment_folder / ".env").write_text("KEY=1", encoding="utf-8")
    result = push(str(environment_folder), "--registry", "localhost:5000/me", "--json")
    assert result.exit_code == 0, result.output
    image = "localhost:5000/me/demo:0.1.0"
    assert calls(docker) == [["build", "--tag", image, "-"], ["push", image]]
    plan = json.loads(result.stdout)
    with tarfile.open(docker / "context.tar") as context:
        sent = {member.name: member.size for member in context.getmembers()}
    assert sent == plan["files"]
    assert {"Dockerfile", "demo/environment.py", "README.md"} <= set(sent)
    assert ".env" not in sent
    assert plan["pushed"] == image


def test_a_dry_run_prints_what_would_be_run_and_runs_nothing(environment_folder, docker):
    before = sorted(environment_folder.rglob("*"))
    result = push(str(environment_folder), "--registry", "ghcr.io/me", "--tag", "v2", "--dry-run")
    assert result.exit_code == 0, result.output
    for command in ("docker build --tag ghcr.io/me/demo:v2 -", "docker push ghcr.io/me/demo:v2"):
        assert f"  {command}\n" in result.stderr
    assert "demo/environment.py" in result.stderr
    assert calls(docker) == []
    assert sorted(environment_folder.rglob("*")) == before


@pytest.mark.parametrize(("step", "tried"), [("build", ["build"]), ("push", ["build", "push"])])
def test_a_failure_of_docker_is_a_failure_of_the_command(
    environment_folder, docker, monkeypatch, step, tried
):
    monkeypatch.setenv("FAILS_AT", step)
    result = push(str(environment_folder), "--registry", "ghcr.io/me")
    assert result.exit_code == 1
    assert f"`docker {step}" in result.stderr
    assert "exit status 1" in result.stderr
    assert [call[0] for call in calls(docker)] == ["build", "push"][
        : ["build", "push"].index(step) + 1
    ]


def test_without_docker_the_other_way_is_named(environment_folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = push(str(environment_folder), "--registry", "ghcr.io/me")
    assert result.exit_code == 1
    assert "no `docker` command" in result.stderr
    assert "--repo-id" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--registry", "ghcr.io/me", "--repo-id", "me/demo"], "--repo-id"),
        (["--registry", "ghcr.io/me", "--private"], "--private"),
        (["--registry", "Ghcr.IO/Me"], "'Ghcr.IO/Me/demo:0.1.0'"),
        (["--registry", "ghcr.io/me", "--tag", "a b"], "a b"),
        (["--tag", "v2"], "--registry"),
    ],
)
def test_options_that_do_not_fit_are_named(environment_folder, docker, arguments, names):
    result = push(str(environment_folder), *arguments, "--dry-run")
    assert (result.exit_code, names in result.stderr) == (2, True), result.output
