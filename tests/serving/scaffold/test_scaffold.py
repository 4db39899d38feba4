import ast
import json
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from corral.cli.main import app
from corral.errors import UsageError
from corral.serve.kinds import kind_of
from corral.serve.scaffold import LONGEST_NAME, check_name, class_name, rendered, scaffold

NAMES = ["demo", "treasure_hunt", "a1_b2", "x" * LONGEST_NAME]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_filled_in_and_valid(tmp_path: Path, name: str):
    made = scaffold(name, parent=tmp_path)
    for place in made.files:
        text = (made.folder / place).read_text(encoding="utf-8")
        assert "{{" not in text, place
        assert "{%" not in text, place
        assert max(map(len, text.splitlines()), default=0) <= 120, place
        if place.endswith(".py"):
            assert max(map(len, text.splitlines()), default=0) <= 100, place
            ast.parse(text)
    assert {"Dockerfile", ".gitignore", "README.md", f"{name}/server/app.py"} <= set(made.files)
    project = tomllib.loads((made.folder / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["name"] == name
    manifest = yaml.safe_load((made.folder / "openenv.yaml").read_text(encoding="utf-8"))
    assert manifest["name"] == name
    assert manifest["app"] == f"{name}.server.app:app"


def test_the_environment_hides_its_answer_and_can_be_served(tmp_path: Path):
    texts = dict(rendered("demo"))
    namespace: dict = {}
    exec(texts["demo/environment.py"], namespace)
    kind = kind_of(namespace["Demo"])
    assert [tool.name for tool in kind.tools or ()] == ["dig"]
    env = namespace["Demo"]()
    env.reset(seed=1)
    shown = {name: value for name, value in vars(env).items() if not name.startswith("_")}
    assert str(env._treasure) not in str(shown)


def test_the_manifest_is_what_the_official_package_asks_for(tmp_path: Path):
    from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser

    manifest = OpenEnvYamlParser().parse(scaffold("demo", parent=tmp_path).folder)
    assert manifest.capabilities.declared_tools == ["dig"]


def test_the_image_runs_the_app_as_somebody_who_is_not_root(tmp_path: Path):
    docker = dict(rendered("demo"))["Dockerfile"].splitlines()
    commands = [line.split(" ", 1) for line in docker if line and line[0].isupper()]
    order = [name for name, _ in commands]
    assert order.index("USER") < order.index("CMD")
    assert dict(commands)["USER"] == "player"
    command = ["corral", "serve", "demo.environment:Demo", "--host", "0.0.0.0"]
    assert json.loads(dict(commands)["CMD"]) == command
    assert "HEALTHCHECK" in order


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("My-Env", "my_env"),
        ("MyHTTPEnv", "my_http_env"),
        ("2048", "env_2048"),
        ("random", "random_env"),
        ("class", "class_env"),
        ("Tests", "tests_env"),
        ("corral", "corral_env"),
        ("a__b", "a_b"),
        ("_x", "x"),
        ("x_", "x"),
        ("über", "uber"),
        ("世界", "my_env"),
        ("../evil", "evil"),
        ("a/b", "a_b"),
        ("", "my_env"),
        ("x" * 40, "x" * LONGEST_NAME),
    ],
)
def test_a_name_that_is_none_is_refused_with_one_that_is(tmp_path: Path, name: str, better: str):
    with pytest.raises(UsageError, match=f"corral init {better}$"):
        scaffold(name, parent=tmp_path)
    check_name(better)
    assert list(tmp_path.iterdir()) == []


def test_the_class_is_called_after_the_package():
    assert [class_name(name) for name in ("demo", "treasure_hunt")] == ["Demo", "TreasureHunt"]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    folder = tmp_path / "demo"
    folder.mkdir()
    scaffold("demo", parent=tmp_path)  # an empty folder is filled
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(UsageError, match="not an empty folder"):
        scaffold("demo", parent=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match="not an empty folder"):
        scaffold("file", parent=tmp_path)


def test_the_command_says_what_to_do_next(tmp_path: Path):
    result = CliRunner().invoke(app, ["init", "demo", "--output", str(tmp_path), "--json"])
    said = json.loads(result.stdout)
    readme = (tmp_path / "demo" / "README.md").read_text(encoding="utf-8")
    assert f"```sh\n{said['serve']}\n```" in readme
    assert f"```sh\n{said['test']}\n```" in readme
    again = CliRunner().invoke(app, ["init", "Demo-2", "--output", str(tmp_path)])
    assert (again.exit_code, "corral init demo_2" in again.stderr) == (2, True)
