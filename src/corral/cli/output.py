"""What the commands print: text for people on standard error, data on standard output."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

screen = Console(stderr=True)
"""For people; standard output stays clean for data."""


def fail(message: str, *, code: int) -> NoReturn:
    """Print one clear message and leave with ``code``."""
    screen.print(f"[bold red]Error:[/] {_escaped(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)


def emit(value: Mapping[str, Any]) -> None:
    """One JSON object on a line of standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def say(message: str) -> None:
    """One line for people."""
    screen.print(_escaped(message), highlight=False, soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table for people; None is shown as a dash, not as 0."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        made.add_column(column)
    for row in rows:
        made.add_row(*[_cell(value) for value in row])
    return made


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else _escaped(str(value))


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")
