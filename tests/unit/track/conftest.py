"""Small episodes for the tests of what a run leaves behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.records import (
    Episode,
    Finish,
    Outcome,
    Sampled,
    SpanKind,
    Task,
    ToolCounts,
    Transcript,
)
from corral.track import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run").create()


@pytest.fixture
def make_episode() -> Callable[..., Episode]:
    return build_episode


def build_episode(*, index: int = 0, reward: float | None = 0.5, **changes: Any) -> Episode:
    sampled = Sampled(ids=(20, 21), logprobs=(-0.1, -2.5), finish=Finish.STOP, version=3)
    transcript = (
        Transcript()
        .append(SpanKind.PROMPT, [10, 11])
        .append_sampled(sampled)
        .append(SpanKind.TOOL, [30])
        .append_sampled(sampled)
    )
    call = {"type": "function", "function": {"name": "guess", "arguments": {"n": 7}}}
    fields: dict[str, Any] = {
        "task": Task(
            index=index,
            prompt=({"role": "user", "content": "Find the number."},),
            columns={"prompt": "Find the number.", "secret": 7},
            environment="guess",
            seed=99,
        ),
        "member": 1,
        "messages": (
            {"role": "user", "content": "Find the number."},
            {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [call]},
            {"role": "tool", "name": "guess", "content": "correct"},
            {"role": "assistant", "content": "Done."},
        ),
        "transcript": transcript,
        "outcome": Outcome.FINISHED,
        "turns": 2,
        "tools": ToolCounts(calls=2, failures=1, malformed=1),
        "rewards": {"GuessNumber": reward, "style": None},
        "reward": reward,
        "seconds": {"reset": 0.25, "total": 1.5},
        "metrics": {"guesses": 1.0},
        "completion_start": 1,
    }
    return Episode(**{**fields, **changes})
