import io
import math

import pytest
from rich.console import Console

from corral.track import ProgressTracker
from corral.track.progress import clock_text


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 2.0
        return self.seconds


def log_file() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=40)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, legacy_windows=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_log_file_gets_one_plain_line_a_step():
    console = log_file()
    with ProgressTracker(
        totals={"grpo": 4}, console=console, now=Clock(), plain_pause_s=0
    ) as progress:
        progress.log(1, {"reward": 0.25, "win_rate": 0.5, "num_tokens": 100}, "grpo")
        progress.log(2, {"reward": 0.5, "win_rate": 1.0, "num_tokens": 3100}, "grpo")
    assert text_of(console).split("\n") == [
        "grpo 1/4  reward 0.25  win rate 50%",
        "grpo 2/4  reward 0.5  win rate 100%  tok/s 1,500  left 0:04",
        "",
    ]


def test_the_steps_own_time_sets_the_pace():
    console = log_file()
    progress = ProgressTracker(totals={"sft": 61}, console=console, now=Clock())
    progress.log(1, {"loss": 1.5, "step_time": 60.0, "tokens_per_second": 12.4}, "sft")
    assert text_of(console) == "sft 1/61  loss 1.5  tok/s 12  left 1:00:00\n"


def test_counters_that_are_not_zero_are_shown_and_trainable_tokens_always():
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    progress = ProgressTracker(console=console, now=Clock())
    counters = {"tokens/trainable": 0.0, "episodes/dropped": 2.0, "episodes/forked": 0.0}
    progress.log(3, {"reward": 0.5, **counters}, "grpo")
    assert text_of(console) == "grpo 3  reward 0.5  trainable tokens 0  dropped 2\n"


def test_unknown_values_are_shown_as_unknown():
    console = log_file()
    progress = ProgressTracker(console=console, now=Clock())
    progress.log(3, {"reward": None, "loss": math.nan}, "grpo")
    assert text_of(console) == "grpo 3  reward –  loss nan\n"


def test_a_terminal_shows_every_stage_and_is_given_back():
    console = terminal()
    with ProgressTracker(totals={"sft": 1, "grpo": 4}, console=console, now=Clock()) as progress:
        progress.log(1, {"loss": 0.5}, "sft")
        progress.log(1, {"reward": 0.25}, "grpo")
    output = text_of(console)
    assert "✓" in output
    assert "grpo" in output
    assert "1/4" in output
    assert output.rstrip().endswith("\x1b[?25h")


def test_markup_in_a_stage_name_is_plain_text():
    console = log_file()
    ProgressTracker(console=console).log(1, {}, "[bold]x[/bold]")
    assert text_of(console) == "[bold]x[/bold] 1\n"


def test_a_closed_terminal_does_not_stop_training():
    console = terminal()
    progress = ProgressTracker(console=console)
    progress.log(1, {"reward": 0.25}, "grpo")
    console.file.close()
    progress.log(2, {"reward": 0.25}, "grpo")
    progress.close()


def test_a_total_can_be_told_later():
    console = log_file()
    progress = ProgressTracker(console=console, now=Clock(), plain_pause_s=0)
    progress.log(1, {}, "grpo")
    progress.set_total("grpo", 3)
    progress.log(2, {}, "grpo")
    assert text_of(console) == "grpo 1\ngrpo 2/3  left 0:02\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (125, "2:05"), (3723, "1:02:03")]
)
def test_clock_text(seconds: float, text: str):
    assert clock_text(seconds) == text


def test_a_log_file_is_not_flooded():
    console = log_file()
    progress = ProgressTracker(totals={"grpo": 4}, console=console, now=Clock(), plain_pause_s=1e9)
    for step in range(1, 5):
        progress.log(step, {}, "grpo")
    lines = text_of(console).splitlines()
    assert [line.split()[1] for line in lines] == ["1/4", "4/4"]
