"""The first program anyone runs, as it is printed; and what it says when something is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corral import EnvironmentFault, GRPOConfig, GRPOTrainer, UsageError
from corral.env import prepare
from corral.track import RunFolder
from support.forced_engine import ForcedEngine, ForcedTurn
from support.tiny_models import tiny_model, tiny_tokenizer

ROOT = Path(__file__).resolve().parent.parent.parent

HELLO = '''
from corral import GRPOConfig, GRPOTrainer

class GuessNumber:
    def reset(self, secret: int, **kwargs) -> str:
        self.secret, self.found = secret, False
        return "I picked a number from 1 to 20."

    def guess(self, n: int) -> str:
        """Guess the number.

        Args:
            n: Your guess, 1 to 20.
        """
        self.found = n == self.secret
        return "correct" if self.found else ("higher" if n < self.secret else "lower")

    def get_reward(self) -> float:
        return float(self.found)

GRPOTrainer(model="path-or-hub-id", environment_factory=GuessNumber,
            train_dataset=[{"prompt": "Find the number.", "secret": s} for s in range(1, 21)],
            args=GRPOConfig(output_dir="runs/guess", max_steps=50)).train()
'''

CONTEXT = 96
"""Leaves a few dozen tokens after the prompt: what a random model says has no end."""


def write_small_model(folder: Path, environment: type) -> None:
    """A model for which the listing of the environment's tools is one token."""
    schemas = prepare(environment).tools.schemas
    listing = [json.dumps(schema, ensure_ascii=False) for schema in schemas]
    tokenizer = tiny_tokenizer(plain_tags=listing)
    model = tiny_model(tokenizer, num_hidden_layers=1, max_position_embeddings=CONTEXT)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def test_the_readme_prints_this_program() -> None:
    assert HELLO.strip() in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.report("P189", "P197")
def test_hello_world_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    definitions, training = HELLO.split("GRPOTrainer(", 1)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(definitions, "hello.py", "exec"), names)
    write_small_model(tmp_path / "path-or-hub-id", names["GuessNumber"])
    exec(compile("GRPOTrainer(" + training, "hello.py", "exec"), names)
    run = tmp_path / "runs" / "guess"
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 50
    assert len(list((run / "episodes").iterdir())) == 50
    (first, *_) = RunFolder(run).episode_files("grpo")
    assert all(saved.episode.turns == 1 for saved in first.read())
    assert (run / "checkpoints" / "grpo" / "checkpoint-50" / "state.json").is_file()


class Game:
    def reset(self, **kwargs: Any) -> None:
        self.number = 0

    def add(self, n: int) -> int:
        """Add a number.

        Args:
            n: The number.
        """
        self.number += n
        return self.number

    def get_reward(self) -> float:
        return float(self.number)


class ToolWithABug(Game):
    def add(self, n: int) -> int:
        """Add a number.

        Args:
            n: The number.
        """
        return self.numbr + n  # type: ignore[attr-defined]


class ResetWithABug(Game):
    def reset(self, **kwargs: Any) -> None:
        self.number = {}["start"]


class ToolWithoutDocstring(Game):
    def multiply(self, n: int) -> int:
        return n


class ResetWithoutColumn(Game):
    def reset(self, prompt: str) -> None:
        self.number = 0


def trained(tmp_path: Path, factory: Any, **options: Any) -> GRPOTrainer:
    """Two steps in which every episode begins with one call of ``add``."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    text = '<tool_call>\n{"name": "add", "arguments": {"n": 2}}\n</tool_call><|im_end|>'
    call = ForcedTurn(ids=tuple(tokenizer.encode(text, add_special_tokens=False)))
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(output_dir=str(tmp_path), max_steps=2, max_completion_length=300),
        train_dataset=[{"prompt": "Add.", "level": 3}],
        processing_class=tokenizer,
        environment_factory=factory,
        engine=ForcedEngine(model, lambda _, turn: None if turn else call),
        **options,
    )
    trainer.train()
    return trainer


def test_a_bug_in_a_tool_is_told_to_the_model_and_the_run_goes_on(tmp_path: Path) -> None:
    trainer = trained(tmp_path, ToolWithABug)
    assert trainer.state.global_step == 2
    for entry in trainer.state.log_history[:-1]:
        assert entry["tools/failure_frequency"] == 1.0
        assert entry["reward"] == 0.0
    (file, _) = trainer.run_folder.episode_files("grpo")
    messages = next(file.read()).episode.messages
    assert messages[2] == {
        "role": "tool",
        "name": "add",
        "content": repr({"error": "'ToolWithABug' object has no attribute 'numbr'"}),
    }


WRONG = [
    (
        ResetWithABug,
        EnvironmentFault,
        "The latest: train_dataset[0]: ResetWithABug.reset raised KeyError: 'start'",
    ),
    (ToolWithoutDocstring, UsageError, "ToolWithoutDocstring.multiply has no docstring"),
    (
        ResetWithoutColumn,
        UsageError,
        "ResetWithoutColumn.reset does not take the dataset column 'level'. Add the parameter or "
        "**kwargs, such as: def reset(self, prompt, **kwargs)",
    ),
]


@pytest.mark.parametrize(("factory", "error", "text"), WRONG, ids=lambda one: str(one)[:30])
def test_what_is_wrong_with_an_environment_is_one_clear_sentence(
    tmp_path: Path, factory: type, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        trained(tmp_path, factory)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("no/such/folder", "model='no/such/folder' does not exist. Give a folder that"),
        ("no/model", "model='no/model' is neither a folder with a model nor a hub id that can be"),
        (".", "model='.' is a folder without config.json, so not a model"),
    ],
)
def test_a_path_that_is_no_model_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError) as raised:
        GRPOTrainer(model, environment_factory=Game, train_dataset=[{"prompt": "Add."}])
    assert str(raised.value).startswith(text)
    assert "\n" not in str(raised.value)


RECIPE = """
name = "broken"
environment = "WORLD"
[model]
kind = "path"
path = "MODEL"
[grpo]
tasks = 8
[grpo.train]
max_steps = 1
per_device_train_batch_size = 4
num_generations = 4
max_completion_length = 4
[evaluation]
games = 1
"""

COMMANDS = [
    ("ResetWithABug", "tiny", 1, "ResetWithABug.reset raised KeyError: 'start'"),
    ("ToolWithoutDocstring", "tiny", 2, "ToolWithoutDocstring.multiply has no docstring"),
    (
        "ResetWithoutColumn",
        "tiny",
        2,
        "ResetWithoutColumn.reset does not take the dataset column 'level'",
    ),
    ("Game", "no/such/model", 2, "model='no/such/model' does not exist. Give a folder that"),
]


@pytest.mark.parametrize(
    ("world", "model", "code", "text"), COMMANDS, ids=lambda one: str(one)[:22]
)
def test_the_command_says_it_in_one_sentence_too(
    tmp_path: Path, model_folder: Path, world: str, model: str, code: int, text: str
) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    classes = source[source.index("class Game") : source.index("def trained")]
    tasks = '\ndef tasks(seed, count):\n    return [{"prompt": "Add.", "level": 3}] * count\n'
    (tmp_path / "game.py").write_text(f"from typing import Any\n{classes}{tasks}")
    (tmp_path / "tiny").symlink_to(model_folder)
    recipe = RECIPE.replace("WORLD", f"game.py:{world}").replace("MODEL", model)
    (tmp_path / "broken.toml").write_text(recipe)
    ran = subprocess.run(
        [sys.executable, "-m", "corral.cli.main", "train", "broken.toml"],
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert ran.stdout == ""
    (line,) = [line for line in ran.stderr.splitlines() if "Error" in line]
    assert line.startswith("Error: ")
    assert text in line
    assert "Traceback" not in ran.stderr
