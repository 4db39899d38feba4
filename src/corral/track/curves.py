"""Draws metrics as inline SVG that takes its colours from the page around it."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corral.errors import MissingExtraError, require
from corral.track.metrics_file import MetricLine

HEADLINES = (
    r"(eval_)?reward",
    r"(.*/)?win_rate",
    r"(.*/)?valid.*",
    r"tools/failure_frequency",
    r"(policy_|eval_)?loss",
    r"(.*/)?entropy",
    r"kl",
    r"mean_token_accuracy",
    r"frac_reward_zero_std",
    r"completions/mean_length",
    r"grad_norm",
    r"learning_rate",
)
"""Metrics shown first and in this order; the others follow by name, folded away."""

MAX_POINTS = 1500
"""A longer curve is thinned to about this many raw points: a page has no more pixels."""

_SMOOTHING_SHARE = 0.1
"""The smoothed line averages over this share of the points on each side of a step."""
_SMOOTHING_POINTS = 25
"""Most points averaged over on each side."""

_SMOOTHED_FROM = 4
"""A curve of fewer points is drawn as dots."""
_FLAT_SHARE = 1e-9
"""A spread below this share of the value is rounding noise."""

_WIDTH_IN, _HEIGHT_IN = 4.2, 2.1

# Stand-ins that matplotlib can draw with; the page's own colours replace them afterwards.
_INK, _LINE, _RULE = "#010203", "#010204", "#010205"
_COLOURS = {_INK: "var(--ink-soft)", _LINE: "var(--line)", _RULE: "var(--rule)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric of one stage over its steps; steps and values have equal lengths."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    """Finite values only."""
    left_out: int
    """How many logged values were unknown or not finite."""

    def is_headline(self) -> bool:
        """Whether it is among those shown first."""
        return _rank(self.name) < len(HEADLINES)

    def is_short(self) -> bool:
        """Whether there are too few points to smooth: they are drawn as dots."""
        return len(self.values) < _SMOOTHED_FROM

    def ends(self) -> tuple[float, float]:
        """First and last value of the line that stands out: the smoothed one if there is one."""
        line = self.values if self.is_short() else running_mean(self.values)
        return line[0], line[-1]


def curves_of(lines: Sequence[MetricLine]) -> list[Curve]:
    """All curves in the lines of one stage, headlines first."""
    names = {name for line in lines for name in line.metrics}
    curves = [_curve(name, lines) for name in names]
    drawn = [curve for curve in curves if curve is not None]
    return sorted(drawn, key=lambda curve: (_rank(curve.name), curve.name))


def can_draw() -> bool:
    """Whether the library that draws is installed."""
    try:
        require("matplotlib", extra="train")
    except MissingExtraError:
        return False
    return True


def draw(curve: Curve) -> str:
    """The curve as an ``<svg>`` element: raw values pale, a centred running mean on top."""
    matplotlib = require("matplotlib", extra="train")
    figure_module = require("matplotlib.figure", extra="train")
    # Ids inside the SVG derive from the salt: curves on one page must not share them, and the same
    # run must give the same page.
    settings = {"svg.fonttype": "none", "svg.hashsalt": curve.name, "font.size": 8}
    with matplotlib.rc_context(settings):
        figure = figure_module.Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), dpi=72)
        figure.subplots_adjust(left=0.13, right=0.98, bottom=0.13, top=0.93)
        _plot(figure.add_subplot(), curve)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _adopt_page_style(file.getvalue())


def running_mean(values: Sequence[float]) -> list[float]:
    """The mean over a window around each value, cut off at the ends."""
    reach = min(_SMOOTHING_POINTS, max(1, round(len(values) * _SMOOTHING_SHARE)))
    windows = (values[max(0, index - reach) : index + reach + 1] for index in range(len(values)))
    return [math.fsum(window) / len(window) for window in windows]


def _curve(name: str, lines: Sequence[MetricLine]) -> Curve | None:
    points = [(line.step, line.metrics[name]) for line in lines if name in line.metrics]
    good = [(step, float(value)) for step, value in points if _is_finite(value)]
    if not good:
        return None
    return Curve(
        name=name,
        steps=tuple(step for step, _ in good),
        values=tuple(value for _, value in good),
        left_out=len(points) - len(good),
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _rank(name: str) -> int:
    for rank, pattern in enumerate(HEADLINES):
        if re.fullmatch(pattern, name):
            return rank
    return len(HEADLINES)


def _plot(axes: Any, curve: Curve) -> None:
    stride = max(1, len(curve.steps) // MAX_POINTS)
    steps, raw = curve.steps[::stride], curve.values[::stride]
    is_short = curve.is_short()
    axes.plot(
        steps,
        raw,
        color=_LINE,
        linewidth=1,
        alpha=1 if is_short else 0.3,
        marker="o" if is_short else None,
        markersize=3,
    )
    if not is_short:
        axes.plot(steps, running_mean(curve.values)[::stride], color=_LINE, linewidth=1.8)
    if max(raw) - min(raw) <= abs(raw[0]) * _FLAT_SHARE:
        # Rounding noise of a constant must not be stretched to the height of the panel.
        margin = abs(raw[0]) * 0.1 or 1.0
        axes.set_ylim(raw[0] - margin, raw[0] + margin)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_RULE)
    axes.tick_params(colors=_RULE, labelcolor=_INK, length=3)
    axes.grid(visible=True, axis="y", color=_RULE, linewidth=0.6, alpha=0.6)
    axes.margins(x=0.02, y=0.1)
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=6)
    axes.yaxis.get_major_locator().set_params(nbins=4)


def _adopt_page_style(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for stand_in, colour in _COLOURS.items():
        svg = svg.replace(stand_in, colour)
    return svg
