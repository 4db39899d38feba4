"""Shows a run in the terminal: one live line a stage, or plain lines in a log file."""

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from corral.track.counters import COUNTERS, SO_FAR

logger = logging.getLogger(__name__)

PACE_STEPS = 20
"""Time left comes from the median of this many latest steps: one slow step must not shake it."""

_REFRESHES_PER_S = 4

PLAIN_PAUSE_S = 10.0
"""Shortest time between two lines of a stage in a log file; its first and last are always there."""


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _decimal(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("reward", "reward", _decimal),
    ("win_rate", "win rate", _percent),
    ("loss", "loss", _decimal),
)
"""Metric, title and format of what is shown when it is there."""


@dataclass(slots=True)
class StageState:
    """What is known about one stage while it runs."""

    name: str
    total: int | None
    step: int = 0
    latest: dict[str, float | None] = field(default_factory=dict[str, float | None])
    tokens_per_s: float | None = None
    seen_tokens: float | None = None
    seen_at: float | None = None
    step_seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=PACE_STEPS))

    def take(self, step: int, metrics: Mapping[str, Any], now: float) -> None:
        """Bring the stage up to date with one logged step."""
        elapsed = _number(metrics.get("step_time"))
        if elapsed is None and self.seen_at is not None and step > self.step:
            elapsed = (now - self.seen_at) / (step - self.step)
        if elapsed is not None and elapsed > 0:
            self.step_seconds.append(elapsed)
        self._take_tokens(metrics, elapsed, step)
        for name in [*(name for name, _, _ in COLUMNS), *COUNTERS, *SO_FAR]:
            if name in metrics:
                self.latest[name] = _number(metrics[name])
        self.step, self.seen_at = max(self.step, step), now

    def _take_tokens(self, metrics: Mapping[str, Any], elapsed: float | None, step: int) -> None:
        given = _number(metrics.get("tokens_per_second"))
        tokens = _number(metrics.get("num_tokens"))
        if given is not None:
            self.tokens_per_s = given
        elif tokens is not None and self.seen_tokens is not None and elapsed:
            self.tokens_per_s = (tokens - self.seen_tokens) / (elapsed * max(1, step - self.step))
        self.seen_tokens = tokens if tokens is not None else self.seen_tokens

    def seconds_left(self) -> float | None:
        """How long the rest of the stage takes at the present pace; None while unknown."""
        if self.total is None or not self.step_seconds:
            return None
        return max(0, self.total - self.step) * statistics.median(self.step_seconds)

    def numbers(self) -> list[tuple[str, str]]:
        """Title and text of everything worth showing."""
        shown = [
            (title, _shown(self.latest[name], form))
            for name, title, form in COLUMNS
            if name in self.latest
        ]
        shown += [
            (title, f"{value:,.0f}")
            for name, title in (COUNTERS | SO_FAR).items()
            # All but one are 0 in a run where all is well; a line has no room for that.
            if (value := self.latest.get(name)) is not None
            and (value or name == "tokens/trainable")
        ]
        if self.tokens_per_s is not None:
            shown.append(("tok/s", f"{self.tokens_per_s:,.0f}"))
        left = self.seconds_left()
        if left is not None and self.total is not None and self.step < self.total:
            shown.append(("left", clock_text(left)))
        return shown

    def position(self) -> str:
        """Such as ``12/50``."""
        return str(self.step) if self.total is None else f"{self.step}/{self.total}"


class ProgressTracker:
    """Shows stage, step, reward, win rate, loss, tokens per second and time left.

    On a terminal it keeps one live line for each stage; elsewhere (a CI log, a file) it writes one
    plain line every ten seconds. It writes to standard error: ``--json`` output stays clean.
    Shown from the metrics: ``reward``, ``win_rate``, ``loss``, the counters of ``counters``,
    ``tokens_per_second`` (or the growth of ``num_tokens``), ``step_time``. Nothing it does raises
    into training.

    Example::

        with ProgressTracker(totals={"grpo": 50}) as progress:
            progress.log(1, {"reward": 0.25, "win_rate": 0.1}, "grpo")
    """

    def __init__(
        self,
        *,
        totals: Mapping[str, int] | None = None,
        console: Console | None = None,
        now: Callable[[], float] = time.monotonic,
        plain_pause_s: float = PLAIN_PAUSE_S,
    ) -> None:
        """Show nothing yet; the first logged step starts the display.

        Args:
            totals: How many steps each stage has, where that is known.
            now: A clock in seconds.
            plain_pause_s: Shortest time between two lines of a stage in a log file.
        """
        self._totals = dict(totals or {})
        self._console = console or Console(stderr=True)
        self._now = now
        self._stages: dict[str, StageState] = {}
        self._live: Live | None = None
        self._is_broken = False
        self._plain_pause_s = plain_pause_s
        self._printed: dict[str, float] = {}

    def set_total(self, stage: str, total: int) -> None:
        """Say how many steps a stage has, when that is known only later."""
        self._totals[stage] = total
        if stage in self._stages:
            self._stages[stage].total = total

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Show one step."""
        if self._is_broken:
            return
        try:
            self._show(step, metrics, stage)
        except Exception as error:  # noqa: BLE001 - a closed terminal must not end training
            self._is_broken, self._live = True, None
            logger.warning("Progress is no longer shown (%s). Training goes on.", error)

    def close(self) -> None:
        """Leave the last state on the terminal and give the terminal back."""
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.stop()
        except Exception:  # noqa: BLE001 - a closed terminal must not end training
            self._is_broken = True

    def __enter__(self) -> "ProgressTracker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _show(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        state = self._stages.get(stage)
        if state is None:
            state = self._stages[stage] = StageState(name=stage, total=self._totals.get(stage))
        state.take(step, metrics, self._now())
        if not self._console.is_terminal:
            self._print_plainly(state)
            return
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=_REFRESHES_PER_S)
            self._live.start()
        self._live.update(live_table(list(self._stages.values())))

    def _print_plainly(self, state: StageState) -> None:
        now = state.seen_at or 0.0
        printed = self._printed.get(state.name)
        if printed is None or state.step == state.total or now - printed >= self._plain_pause_s:
            self._printed[state.name] = now
            self._console.print(plain_line(state), markup=False, highlight=False, soft_wrap=True)


def plain_line(stage: StageState) -> str:
    """One step as a line for a log."""
    parts = [f"{stage.name} {stage.position()}"]
    parts += [f"{title} {text}" for title, text in stage.numbers()]
    return "  ".join(parts)


def live_table(stages: list[StageState]) -> Table:
    """All stages, one row each, for a terminal."""
    table = Table.grid(padding=(0, 2))
    for stage in stages:
        is_done = stage.total is not None and stage.step >= stage.total
        bar = ProgressBar(
            total=stage.total, completed=stage.step, width=24, pulse=stage.total is None
        )
        numbers = Text()
        for title, text in stage.numbers():
            numbers.append(f"{title} ", style="dim").append(f"{text}  ", style="bold")
        table.add_row(
            Text("✓" if is_done else "●", style="green" if is_done else "cyan"),
            Text(stage.name, style="bold"),
            bar,
            Text(stage.position()),
            numbers,
        )
    return table


def clock_text(seconds: float) -> str:
    """Such as ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    if value is None:
        return "–"
    return form(value) if math.isfinite(value) else str(value)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None
