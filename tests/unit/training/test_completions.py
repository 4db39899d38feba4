"""The table of completions: what a row shows, and that no value keeps it from being written."""

from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from rich.console import Console

from corral.algorithms import Advantages
from corral.records import Episode, Group, Outcome, Task, Transcript
from corral.rollout import Scored
from corral.training.completions import (
    completion_rows,
    first_of_each_prompt,
    print_sample,
    write_parquet,
)
from corral.training.generation import Generation

CALL = {"type": "function", "function": {"name": "add", "arguments": {"n": 1, "to": "x"}}}


def generation(*prompts: Any, outcome: Outcome = Outcome.FINISHED) -> Generation:
    """One group of one episode for each prompt; the last one has the outcome."""
    groups: list[Group] = []
    for index, prompt in enumerate(prompts):
        messages = (
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
        )
        task = Task(index=index, prompt=messages[:1])  # type: ignore[arg-type]
        episode = Episode(
            task=task,
            member=0,
            messages=messages,  # type: ignore[arg-type]
            transcript=Transcript(),
            outcome=outcome if index == len(prompts) - 1 else Outcome.FINISHED,
            turns=1,
            rewards={"r": float(index)},
            completion_start=1,
        )
        groups.append(Group(task=task, episodes=(episode,)))
    values = [0.5] * len(prompts)
    scored = Scored(
        groups=tuple(groups),
        names=("r",),
        weights=(1.0,),
        extra={"note": [f"note {index}" for index in range(len(prompts))]},
    )
    advantages = Advantages(values=values, rewards=values, std_is_zero=[False] * len(prompts))
    return Generation(scored=scored, advantages=advantages, seconds=1.0)


def test_a_fault_has_no_row_and_columns_stay_aligned() -> None:
    rows = completion_rows(
        generation("a", "b", "c", outcome=Outcome.ENVIRONMENT_FAULT), 7, with_images=True
    )
    assert [(row["step"], row["r"], row["note"]) for row in rows] == [
        (7, 0.0, "note 0"),
        (7, 1.0, "note 1"),
    ]
    assert list(rows[0]) == ["step", "prompt", "completion", "r", "note", "advantage"]
    (call,) = rows[0]["completion"][0]["tool_calls"]
    assert call["function"]["arguments"] == '{"n": 1, "to": "x"}'


@pytest.mark.contract(44)
def test_of_each_prompt_the_first_row_is_kept() -> None:
    rows = completion_rows(generation("a", "b", "a"), 1, with_images=True)
    assert [row["note"] for row in first_of_each_prompt(rows)] == ["note 0", "note 1"]


def test_images_are_a_column_of_their_own_where_asked() -> None:
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "image": "pixels"}]
    shown, hidden = (
        completion_rows(generation(blocks), 1, with_images=is_shown) for is_shown in (True, False)
    )
    assert shown[0]["image"] == ["pixels"]
    assert "image" not in hidden[0]
    assert shown[0]["prompt"][0]["content"] == [blocks[0], {"type": "image"}]


@pytest.mark.report("P184")
def test_values_without_a_common_type_are_written_as_text(tmp_path: Path) -> None:
    rows = completion_rows(generation("a", [{"type": "text", "text": "b"}]), 1, with_images=False)
    rows = [row | {"odd": odd} for row, odd in zip(rows, (1, object()), strict=True)]
    write_parquet(tmp_path / "table.parquet", rows)
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert [row["r"] for row in table] == [0.0, 1.0]
    assert table[0]["odd"] == "1"
    assert '"content": "a"' in table[0]["prompt"]
    output = StringIO()
    print_sample(rows, "Step 1", at_most=None, console=Console(file=output, width=200))
    assert '"text": "b"' in output.getvalue()
