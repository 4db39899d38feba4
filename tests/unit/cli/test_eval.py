from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-here", "--world", "wordel"], "Unknown world 'wordel'"),
        (["nothing-here"], "nothing-here is not a folder that is here, so say which world to play"),
        (["empty", "--world", "echo"], "model='empty' is a folder without config.json"),
        (["./none", "--world", "echo"], "model='./none' does not exist"),
        (["a/b/c", "--world", "echo"], "model='a/b/c' does not exist"),
        (["./file", "--world", "echo"], "model='./file' is a file"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(corral, tmp_path: Path, arguments, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    ran = corral("eval", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("Error: ")
    assert message in ran.err


def test_a_model_that_plays_must_be_one(corral, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    ran = corral("play", "echo", "--model", "empty")
    assert ran.code == 2
    assert "model='empty' is a folder without config.json" in ran.err
