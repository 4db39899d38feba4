"""Pages of the docs whose middle is made from the code or its tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BEGIN, _END = "<!-- table: begin -->", "<!-- table: end -->"


def page_of(name: str) -> str:
    """A page as it is; ``name`` is relative to the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def renewed(name: str, middle: str) -> str:
    """The page with another middle."""
    before, _, rest = page_of(name).partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{middle}\n{_END}{after}"


def write(name: str, middle: str) -> None:
    """Write the page with another middle."""
    (ROOT / name).write_text(renewed(name, middle), encoding="utf-8")


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [_line(columns), "|---" * len(columns) + "|", *map(_line, rows)]


def _line(cells: list[str]) -> str:
    return "|".join(["", *(f" {cell} " if cell else " " for cell in cells), ""])
