import json
from pathlib import Path

import pytest

from corral.errors import StorageError, UsageError
from corral.track import RunFolder, StageResult, write_atomically


def play(run: RunFolder, make_episode, steps: range) -> None:
    for step in steps:
        run.write_episodes("grpo", step, [make_episode(index=step)])
        run.append_metrics("grpo", step, {"loss": 1 / step}, time_s=float(step))
        if step % 2 == 0:
            run.write_episodes("eval", step, [make_episode(index=step)])
            run.append_metrics("eval", step, {"reward": step / 3}, time_s=float(step))


def contents(run: RunFolder) -> dict[str, bytes]:
    return {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("resume_at", [1, 2, 3, 4, 5])
def test_a_resumed_run_leaves_the_files_of_an_unbroken_one(
    tmp_path: Path, make_episode, resume_at: int
):
    unbroken = RunFolder(tmp_path / "unbroken").create()
    play(unbroken, make_episode, range(1, 7))
    broken = RunFolder(tmp_path / "broken").create()
    play(broken, make_episode, range(1, 6))
    with broken.metrics_path.open("ab") as file:
        file.write(b'{"stage": "gr')
    broken.truncate_after("grpo", resume_at)
    play(broken, make_episode, range(resume_at + 1, 7))
    assert contents(broken) == contents(unbroken)


def test_truncating_keeps_what_happened_before_in_other_stages(run: RunFolder, make_episode):
    run.append_metrics("sft", 9, {})
    run.write_episodes("sft", 9, [make_episode()])
    play(run, make_episode, range(1, 4))
    run.truncate_after("grpo", 2)
    assert [(line.stage, line.step) for line in run.read_metrics()] == [
        ("sft", 9),
        ("grpo", 1),
        ("grpo", 2),
        ("eval", 2),
    ]
    assert [(file.stage, file.step) for file in run.episode_files()] == [
        ("eval", 2),
        ("grpo", 1),
        ("grpo", 2),
        ("sft", 9),
    ]


def test_later_stages_are_dropped_even_when_no_step_is_undone(run: RunFolder, make_episode):
    play(run, make_episode, range(1, 2))
    run.append_metrics("after", 0, {})
    run.write_episodes("after", 0, [make_episode()])
    run.truncate_after("grpo", 1, later_stages=["after"])
    assert {line.stage for line in run.read_metrics()} == {"grpo"}
    assert {file.stage for file in run.episode_files()} == {"grpo"}


def test_truncating_an_empty_run_does_nothing(run: RunFolder):
    run.truncate_after("grpo", 3)
    assert run.read_metrics() == []
    assert not run.metrics_path.exists()


def test_episodes_without_a_metric_line_are_dropped_too(run: RunFolder, make_episode):
    play(run, make_episode, range(1, 2))
    run.write_episodes("grpo", 2, [make_episode()])
    run.truncate_after("grpo", 1)
    assert [file.step for file in run.episode_files("grpo")] == [1]


def test_episode_files_are_listed_by_number_and_not_by_text(run: RunFolder, make_episode):
    for step in (10, 2, 1_000_001):
        run.write_episodes("grpo-v2", step, [make_episode(index=step)])
    files = run.episode_files("grpo-v2")
    assert [file.step for file in files] == [2, 10, 1_000_001]
    assert next(files[1].read()).episode.task.index == 10


@pytest.mark.parametrize("stage", ["../escape", "a/b", "", ".hidden", "a b"])
def test_a_stage_that_cannot_be_a_file_name_is_refused(run: RunFolder, stage: str):
    with pytest.raises(UsageError, match="cannot be part of a file name"):
        run.append_metrics(stage, 1, {})


def test_the_summary_says_what_was_asked_and_what_came_out(run: RunFolder):
    assert run.read_summary() is None
    run.write_summary(
        asked={"recipe": "guess", "model": {"hf_token": "hf_abc", "max_output_tokens": 9}},
        stages=[StageResult(name="base", metrics={"win_rate": None, "wins": "0/30"}, seconds=2.5)],
        wall_time_s=12.5,
        extra={"command": "corral train guess"},
    )
    summary = run.read_summary()
    assert summary is not None
    assert summary["asked"]["model"] == {"hf_token": "**********", "max_output_tokens": 9}
    assert summary["stages"] == [{"name": "base", "win_rate": None, "wins": "0/30", "seconds": 2.5}]
    assert summary["wall_time_s"] == 12.5
    assert summary["command"] == "corral train guess"
    assert {"python", "corral", "torch", "transformers"} <= set(summary["versions"])
    assert "hf_abc" not in json.dumps(summary)


def test_a_stage_of_the_summary_can_be_read_back():
    stage = StageResult(name="sft", metrics={"wins": 12, "guesses_per_win": None}, seconds=2.5)
    assert stage.as_row() == {"name": "sft", "wins": 12, "guesses_per_win": None, "seconds": 2.5}
    assert StageResult.from_row(stage.as_row()) == stage


@pytest.mark.parametrize("name", ["name", "seconds"])
def test_a_metric_cannot_hide_a_column_of_the_stage(name: str):
    with pytest.raises(UsageError, match=f"metric called '{name}'.*rename the metric"):
        StageResult(name="sft", metrics={name: 1})


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch):
    path = tmp_path / "summary.json"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("corral.track.atomic.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_with_non_ascii_letters_works(tmp_path: Path):
    run = RunFolder(tmp_path / "läufe" / "数字").create()
    assert not run.exists()
    run.write_config('name = "ü"\n')
    run.append_metrics("grpo", 1, {"größe": 1})
    assert run.exists()
    assert run.read_metrics()[0].metrics == {"größe": 1}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can add to")
def test_a_folder_that_cannot_be_made_is_named_with_what_helps() -> None:
    with pytest.raises(StorageError, match=r"^/proc/corral cannot be written: .*an output_dir"):
        RunFolder(Path("/proc/corral")).create()
