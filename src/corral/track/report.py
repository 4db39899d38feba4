"""Writes the page that shows a run: self-contained, without scripts, and without network."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from corral.track.atomic import write_atomically
from corral.track.counters import COUNTERS, SO_FAR, totals
from corral.track.curves import Curve, can_draw, curves_of, draw
from corral.track.metrics_file import MetricLine
from corral.track.progress import clock_text
from corral.track.run_folder import RunFolder
from corral.track.samples import Decode, Sample, choose, number, prepare
from corral.track.summary import versions

SAMPLES_PER_STAGE = 3

_ORIGIN = re.compile(r"(?P<setting>.*\S)\s{2,}# (?P<origin>\S+)")
_PERCENT_NAMES = re.compile(r"(.*[/_])?(win_rate|share|accuracy)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One curve on the page."""

    name: str
    svg: Markup
    first: str
    last: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePart:
    """What the page says about one stage."""

    name: str
    steps: str
    headlines: tuple[Panel, ...]
    others: tuple[Panel, ...]
    samples: tuple[Sample, ...]
    samples_from: str
    """Which file the samples are from, and how many of its episodes were scored."""


def write_report(
    run: RunFolder, *, decode: Decode | None = None, samples_per_stage: int = SAMPLES_PER_STAGE
) -> Path:
    """Write ``report.html`` of a run, finished or not, and return its path.

    Args:
        decode: Token ids to one text for each; the ids are shown without it.
        samples_per_stage: Episodes shown of each stage, from its last saved step.
    """
    page = render_report(run, decode=decode, samples_per_stage=samples_per_stage)
    write_atomically(run.report_path, page)
    return run.report_path


def render_report(
    run: RunFolder, *, decode: Decode | None = None, samples_per_stage: int = SAMPLES_PER_STAGE
) -> str:
    """The page as text; parts that the run has not written yet are left out."""
    summary = run.read_summary() or {}
    lines = run.read_metrics()
    # Everything in the page may come from a model: the template escapes all of it.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    source = files("corral.track").joinpath("report.html.jinja").read_text(encoding="utf-8")
    page = environment.from_string(source).render(
        name=run.path.resolve().name,
        summary=summary,
        overview=_overview(summary, lines),
        table=_table(summary.get("stages", [])),
        stages=[
            _stage(run, stage, lines, decode, samples_per_stage) for stage in _stages(run, lines)
        ],
        can_draw=can_draw(),
        settings=_settings(run),
        asked=json.dumps(summary.get("asked", {}), indent=2, ensure_ascii=False),
        versions=summary.get("versions") or versions(),
    )
    # A lone half of a surrogate pair cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def _stages(run: RunFolder, lines: Sequence[MetricLine]) -> list[str]:
    """Stages in the order they began, then those of which only episodes are left."""
    names = [line.stage for line in lines] + [file.stage for file in run.episode_files()]
    return list(dict.fromkeys(names))


def _overview(summary: Mapping[str, Any], lines: Sequence[MetricLine]) -> list[tuple[str, str]]:
    wall_time_s = summary.get("wall_time_s")
    if wall_time_s is None and len(lines) > 1:
        wall_time_s = lines[-1].time - lines[0].time
    facts = [("steps logged", f"{len(lines):,}")]
    if wall_time_s is not None:
        facts.insert(0, ("wall time", clock_text(wall_time_s)))
    if "written" in summary:
        facts.append(("finished", str(summary["written"]).replace("T", " ")))
    else:
        facts.append(("state", "not finished"))
    return facts + _counters(lines)


def _counters(lines: Sequence[MetricLine]) -> list[tuple[str, str]]:
    """What became of the tokens of each stage."""
    titles = COUNTERS | SO_FAR
    return [
        (stage, ", ".join(f"{titles[name]} {value:,}" for name, value in values.items()))
        for stage, values in totals(lines).items()
    ]


def _table(stages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for stage in stages for name in stage))
    columns = [name for name in columns if name not in ("name", "seconds")]
    has_time = any(stage.get("seconds") is not None for stage in stages)
    rows = []
    for stage in stages:
        cells = [_cell(name, stage.get(name)) for name in columns]
        if has_time:
            seconds = stage.get("seconds")
            cells.append("–" if seconds is None else clock_text(seconds))
        rows.append((stage.get("name", "?"), cells))
    titles = [name.replace("_", " ") for name in columns] + (["time"] if has_time else [])
    return {"columns": titles, "rows": rows}


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float) and _PERCENT_NAMES.fullmatch(name) and 0 <= value <= 1:
        return f"{value:.1%}"
    return number(value)


def _stage(
    run: RunFolder,
    stage: str,
    lines: Sequence[MetricLine],
    decode: Decode | None,
    samples_per_stage: int,
) -> StagePart:
    own = [line for line in lines if line.stage == stage]
    curves = curves_of(own) if can_draw() else []
    samples, samples_from = _samples(run, stage, decode, samples_per_stage)
    steps = f"steps {own[0].step}–{own[-1].step}" if len(own) > 1 else ""
    return StagePart(
        name=stage,
        steps=steps,
        headlines=tuple(_panel(curve) for curve in curves if curve.is_headline()),
        others=tuple(_panel(curve) for curve in curves if not curve.is_headline()),
        samples=samples,
        samples_from=samples_from,
    )


def _panel(curve: Curve) -> Panel:
    first, last = curve.ends()
    note = f"{curve.left_out} values unknown or not finite" if curve.left_out else ""
    return Panel(
        name=curve.name,
        # Holds numbers and matplotlib's own elements only, never text of a run.
        svg=Markup(draw(curve)),
        first=_cell(curve.name, first),
        last=_cell(curve.name, last),
        note=note,
    )


def _samples(
    run: RunFolder, stage: str, decode: Decode | None, count: int
) -> tuple[tuple[Sample, ...], str]:
    saved_files = run.episode_files(stage)
    if not saved_files or count < 1:
        return (), ""
    last = saved_files[-1]
    episodes = list(last.read())
    scored = sum(one.episode.reward is not None for one in episodes)
    chosen = choose(episodes, count)
    samples = tuple(prepare(label, last.step, saved, decode) for label, saved in chosen)
    return samples, f"step {last.step}, {scored} of {len(episodes)} episodes scored"


def _settings(run: RunFolder) -> list[tuple[str, str]]:
    """The lines of the configuration, each with its origin apart."""
    try:
        text = run.config_path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    rows: list[tuple[str, str]] = []
    for line in text.rstrip("\n").split("\n"):
        match = _ORIGIN.fullmatch(line)
        rows.append((match["setting"], match["origin"]) if match else (line, ""))
    return rows
