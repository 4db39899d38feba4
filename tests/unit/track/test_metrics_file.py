import json
import logging
import math

import pytest

from corral.track import RunFolder


def test_metrics_are_read_as_they_were_written(run: RunFolder):
    run.append_metrics("sft", 1, {"loss": 0.25, "reward": None}, time_s=12.5)
    run.append_metrics("grpo", 1, {"loss": math.nan, "kl": math.inf})
    first, second = run.read_metrics()
    assert (first.stage, first.step, first.time) == ("sft", 1, 12.5)
    assert first.metrics == {"loss": 0.25, "reward": None}
    assert math.isnan(second.metrics["loss"])
    assert second.metrics["kl"] == math.inf
    assert [line.stage for line in run.read_metrics("grpo")] == ["grpo"]


def test_a_line_is_one_flat_object_of_stage_step_time_and_metrics(run: RunFolder):
    run.append_metrics("grpo", 7, {"reward": 1}, time_s=0.0)
    assert json.loads(run.metrics_path.read_text()) == {
        "stage": "grpo",
        "step": 7,
        "time": 0.0,
        "metrics": {"reward": 1},
    }


@pytest.mark.report("P191")
@pytest.mark.parametrize("content", [None, b"", b'{"stage": "gr'])
def test_missing_empty_and_half_written_files_have_no_lines(run: RunFolder, content: bytes | None):
    if content is not None:
        run.metrics_path.write_bytes(content)
    assert run.read_metrics() == []


def test_a_half_written_last_line_is_ignored_and_then_replaced(run: RunFolder):
    run.append_metrics("grpo", 1, {"loss": 1.0})
    whole = run.metrics_path.read_bytes()
    run.metrics_path.write_bytes(whole + b'{"stage": "grpo", "step": 2, "met')
    assert [line.step for line in run.read_metrics()] == [1]
    run.append_metrics("grpo", 2, {"loss": 2.0})
    assert [line.step for line in run.read_metrics()] == [1, 2]
    assert run.metrics_path.read_bytes().startswith(whole)


def test_a_half_written_line_longer_than_a_block_is_removed(run: RunFolder):
    run.append_metrics("grpo", 1, {})
    with run.metrics_path.open("ab") as file:
        file.write(b"x" * 200_000)
    run.append_metrics("grpo", 2, {})
    assert [line.step for line in run.read_metrics()] == [1, 2]
    assert b"x" not in run.metrics_path.read_bytes()


@pytest.mark.report("P172")
def test_only_newlines_end_a_line(run: RunFolder):
    text = json.dumps(
        {"stage": "grpo", "step": 1, "time": 0, "metrics": {"a\u2028b\u0085\x1cc": 1}},
        ensure_ascii=False,
    )
    run.metrics_path.write_text(text + "\n", encoding="utf-8")
    assert run.read_metrics()[0].metrics == {"a\u2028b\u0085\x1cc": 1}


@pytest.mark.parametrize("damage", [b"\x00\x00\x00", b"[1]", b'{"stage": "grpo"}', b"\xff{"])
def test_a_damaged_line_is_skipped_and_reported(run, caplog, damage: bytes):
    run.append_metrics("grpo", 1, {})
    with run.metrics_path.open("ab") as file:
        file.write(damage + b"\n")
    run.append_metrics("grpo", 2, {})
    with caplog.at_level(logging.WARNING):
        assert [line.step for line in run.read_metrics()] == [1, 2]
    assert "damaged line" in caplog.text


def test_a_growing_file_can_be_followed(run: RunFolder):
    run.append_metrics("grpo", 1, {})
    lines, offset = run.read_metrics_after(0)
    assert [line.step for line in lines] == [1]
    assert run.read_metrics_after(offset) == ([], offset)
    with run.metrics_path.open("ab") as file:
        file.write(b'{"stage": "grpo"')
    assert run.read_metrics_after(offset) == ([], offset)
    run.append_metrics("grpo", 2, {})
    lines, offset = run.read_metrics_after(offset)
    assert [line.step for line in lines] == [2]


def test_a_file_that_became_shorter_is_followed_from_its_beginning(run: RunFolder):
    for step in (1, 2, 3):
        run.append_metrics("grpo", step, {})
    _, offset = run.read_metrics_after(0)
    run.truncate_after("grpo", 1)
    lines, _ = run.read_metrics_after(offset)
    assert [line.step for line in lines] == [1]
