import tomllib
from pathlib import Path

import pytest


def test_a_dry_run_prints_the_resolved_settings_and_writes_nothing(corral, tmp_path: Path):
    ran = corral(
        "train", "wordle-tiny", "--dry-run", "--seed", "3", "--set", "grpo.train.max_steps=50"
    )
    assert ran.code == 0
    resolved = tomllib.loads(ran.out)
    assert resolved["seed"] == 3
    assert resolved["grpo"]["train"]["max_steps"] == 50
    origins = [
        (line.partition("=")[0].strip(), line.rpartition("# ")[2]) for line in ran.out.splitlines()
    ]
    assert {("seed", "--seed"), ("max_steps", "--set"), ("environment", "recipe")} <= set(origins)
    assert list(tmp_path.iterdir()) == []


def test_what_a_dry_run_prints_is_a_recipe(corral, tmp_path: Path):
    printed = corral("train", "wordle-tiny", "--dry-run", "--set", "sft.games=7").out
    (tmp_path / "mine.toml").write_text(printed, encoding="utf-8")
    again = corral("train", "mine.toml", "--dry-run")
    assert again.code == 0
    assert tomllib.loads(again.out) == tomllib.loads(printed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "grpo.train.max_step=5"], "Did you mean grpo.train.max_steps"),
        (["--set", "grp.train.max_steps=5"], "Did you mean grpo"),
        (["--set", "grpo.train.max_steps=soon"], "grpo.train.max_steps = 'soon' (--set)"),
        (["--set", "grpo.train.num_generations=1"], "greater than or equal to 2"),
        (["--set", "seed"], "write it as section.key=value"),
        (["--resume"], "There is no run to resume in runs/wordle-tiny"),
    ],
)
def test_a_wrong_setting_is_one_sentence_with_the_remedy(corral, tmp_path, arguments, message):
    ran = corral("train", "wordle-tiny", *arguments)
    assert ran.code == 2
    assert ran.err.startswith("Error: ")
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_recipe_is_answered_with_the_known_ones(corral):
    ran = corral("train", "wordle-huge")
    assert ran.code == 2
    assert "recipe='wordle-huge' is neither a packaged recipe (" in ran.err
    assert "wordle-tiny" in ran.err


def test_a_file_that_is_no_recipe_is_named(corral, tmp_path: Path):
    (tmp_path / "bad.toml").write_text("name = ")
    ran = corral("train", "bad.toml")
    assert ran.code == 2
    assert "not valid TOML" in ran.err
