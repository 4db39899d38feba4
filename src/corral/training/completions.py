"""The completions of a generation as a table: on the console, in a Parquet file, in trackers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from corral.errors import require
from corral.records import Episode, Message
from corral.training.generation import Generation

Row = dict[str, Any]
"""Columns: step, prompt, completion, one for each reward, what reward functions logged with
``log_extra``, advantage, and images if there are any. Prompt and completion are messages."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What could steer a terminal."""


def completion_rows(generation: Generation, step: int, *, with_images: bool) -> list[Row]:
    """The rows of this process's episodes; faults, which have no completion, are left out."""
    scored = generation.scored
    rows: list[Row] = []
    for episode, advantage in zip(generation.episodes(), generation.advantages.values, strict=True):
        if episode.outcome.is_fault():
            continue
        extra = {name: values[len(rows)] for name, values in scored.extra.items()}
        rewards = {name: episode.rewards.get(name) for name in scored.names}
        row = {
            "step": step,
            "prompt": _plain(episode.messages[: episode.completion_start]),
            "completion": _plain(episode.messages[episode.completion_start :]),
            **rewards,
            **extra,
            "advantage": advantage,
        }
        images = _images(episode) if with_images else []
        rows.append(row | ({"image": images} if images else {}))
    return rows


def first_of_each_prompt(rows: Sequence[Row]) -> list[Row]:
    """The rows without those whose prompt has been seen before."""
    firsts: dict[str, Row] = {}
    for row in rows:
        firsts.setdefault(json.dumps(row["prompt"], default=str), row)
    return list(firsts.values())


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write the table without its images.

    Messages and logged columns whose values have no common type are written as JSON text.
    """
    pyarrow = require("pyarrow", extra="data")
    parquet = require("pyarrow.parquet", extra="data")
    names = [name for name in _columns(rows) if name != "image"]
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pyarrow.array(values)
        except pyarrow.ArrowException:
            columns[name] = pyarrow.array([json.dumps(value, default=str) for value in values])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    parquet.write_table(pyarrow.table(columns), draft)
    draft.replace(path)


def as_text(rows: Sequence[Row]) -> list[Row]:
    """The rows with conversations as text, for trackers' tables."""
    return [
        {
            name: _shown(value) if name in ("prompt", "completion") else value
            for name, value in row.items()
        }
        for row in rows
    ]


def print_sample(rows: Sequence[Row], title: str, *, at_most: int | None, console: Console) -> None:
    """Show completions with their rewards."""
    shown = rows if at_most is None else rows[:at_most]
    names = [name for name in _columns(shown) if name not in ("step", "image")]
    table = Table(show_lines=True, expand=True)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in shown:
        # Text, not markup: what a model writes is data.
        table.add_row(*(Text(_CONTROL.sub("\ufffd", _shown(row.get(name)))) for name in names))
    console.print(Panel(table, title=Text(title), border_style="dim"))


def _columns(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    last = [name for name in ("advantage", "image") if name in names]
    return [name for name in names if name not in last] + last


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return "\n".join(_message_text(each) for each in value)
    return str(value)


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, default=str)
    calls = [json.dumps(call, default=str) for call in message.get("tool_calls") or ()]
    said = [message.get("reasoning_content") or "", text if content else "", *calls]
    return f"{message['role'].upper()}: " + "\n".join(part for part in said if part)


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages without pictures; arguments of calls, of any shape, as JSON text."""
    return [dict(_plain_fields(message)) for message in messages]


def _plain_fields(message: Message) -> Iterator[tuple[str, Any]]:
    for name, value in message.items():
        if name == "content" and isinstance(value, list):
            value = [{"type": "image"} if _is_image(block) else block for block in value]
        if name == "tool_calls" and value:
            value = [_plain_call(call) for call in cast("list[Any]", value)]
        yield name, value


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    if not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(function.get("arguments"), default=str)
    return {**call, "function": function}


def _is_image(block: Any) -> bool:
    return isinstance(block, Mapping) and str(block.get("type", "")).startswith("image")


def _images(episode: Episode) -> list[Any]:
    contents = [message.get("content") for message in episode.messages]
    return [
        block.get("image") or block.get("image_url")
        for content in contents
        if isinstance(content, list)
        for block in cast("list[Any]", content)
        if _is_image(block)
    ]
