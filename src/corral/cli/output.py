"""What the commands print: text for people on standard error, data on standard output."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, NoReturn, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

screen = Console(stderr=True)
"""For people; standard output stays clean for data."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What could steer a terminal. Models write some of what is shown, and what they write is data."""


def fail(message: str, *, code: int) -> NoReturn:
    """Print one clear message and leave with ``code``."""
    screen.print(Text.assemble(("Error:", "bold red"), " ", _plain(message)), soft_wrap=True)
    sys.exit(code)


_data: list[TextIO] = []
"""Where data goes, innermost last, while what others print goes elsewhere."""


@contextmanager
def prints_apart() -> Iterator[None]:
    """Send what environments, rewards and libraries print to standard error.

    It is for people, and must not stand among the JSON that :func:`emit` writes.
    """
    _data.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _data.pop()


def emit(value: Mapping[str, Any]) -> None:
    """One JSON object on a line of standard output."""
    stdout = _data[-1] if _data else sys.stdout
    stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    stdout.flush()


def say(message: str, *, end: str = "\n", style: str = "") -> None:
    """One line for people."""
    screen.print(Text(_plain(message), style), soft_wrap=True, end=end)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table for people; None is shown as a dash, not as 0."""
    made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    listed = [list(row) for row in rows]
    for index, column in enumerate(columns):
        is_numeric = any(_is_number(row[index]) for row in listed)
        made.add_column(column, justify="right" if is_numeric else "left")
    for row in listed:
        made.add_row(*[_cell(value) for value in row])
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("–")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text(f"{value:.2f}" if isinstance(value, float) else _plain(str(value)))


def _plain(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)
