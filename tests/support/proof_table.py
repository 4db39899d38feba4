"""Tables in the docs that say which tests show what, made from the tests' markers."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

Key = Any
"""What names an item: a number, or text."""
Item = TypeVar("Item")


class Section(NamedTuple, Generic[Item]):
    """Neighbouring items under one heading."""

    title: str
    items: Mapping[Key, Item]


@dataclass(frozen=True, order=True)
class Proof:
    """A test that shows an item."""

    file: str
    """Relative to the repository."""
    name: str

    def link(self) -> str:
        """The test in words, as a link from a page in ``docs``."""
        return f"[{self.name.removeprefix('test_').replace('_', ' ')}](../{self.file})"


@dataclass(frozen=True, kw_only=True)
class ProofTable(Generic[Item]):
    """A page whose middle is made from the tests that carry a marker."""

    page: str
    """Relative to the repository."""
    marker: str
    sections: Sequence[Section[Item]]
    columns: Sequence[str]
    cells: Callable[[Key, Item, str], Sequence[str]]
    """The cells of a row, from its key, its item, and the links to its tests."""
    summary: Callable[[Mapping[Key, Sequence[Proof]]], str]
    """One sentence with the numbers."""

    @property
    def items(self) -> dict[Key, Item]:
        """The items of all sections."""
        return {key: item for section in self.sections for key, item in section.items.items()}

    def proofs(self) -> dict[Key, list[Proof]]:
        """The tests of each item, sorted; read from the sources, nothing is imported."""
        found: dict[Key, list[Proof]] = {key: [] for key in self.items}
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            source = path.read_text(encoding="utf-8")
            if f"mark.{self.marker}(" not in source:
                continue
            file = path.relative_to(ROOT).as_posix()
            for name, key in _marked(ast.parse(source), self.marker):
                if key not in found:
                    raise ValueError(f"{file}: {name} is marked {self.marker}({key!r}): no item.")
                found[key].append(Proof(file, name))
        return {key: sorted(set(tests)) for key, tests in found.items()}

    def text(self) -> str:
        """The page as it is."""
        return (ROOT / self.page).read_text(encoding="utf-8")

    def renewed(self) -> str:
        """The page with its generated part as the tests say now."""
        before, _, rest = self.text().partition(BEGIN)
        _, _, after = rest.partition(END)
        tests = self.proofs()
        return f"{before}{BEGIN}\n{self.summary(tests)}\n\n{self._tables(tests)}\n{END}{after}"

    def write(self) -> None:
        """Write the page anew."""
        (ROOT / self.page).write_text(self.renewed(), encoding="utf-8")

    def _tables(self, tests: Mapping[Key, Sequence[Proof]]) -> str:
        """Markdown: one table a section, one row an item."""
        lines: list[str] = []
        for section in self.sections:
            lines += [
                f"### {section.title}",
                "",
                _row(self.columns),
                "|---" * len(self.columns) + "|",
            ]
            for key, item in section.items.items():
                links = "<br>".join(proof.link() for proof in tests[key])
                lines.append(_row(self.cells(key, item, links or "–")))
            lines.append("")
        return "\n".join(lines).rstrip()


def count_of_tests(tests: Mapping[Key, Sequence[Proof]]) -> int:
    """How many test functions show something."""
    return len({proof for proofs in tests.values() for proof in proofs})


def _row(cells: Sequence[str]) -> str:
    return "|".join(["", *(f" {cell} " if cell else " " for cell in cells), ""])


def _marked(module: ast.Module, marker: str) -> Iterator[tuple[str, Key]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((node.name, key) for key in _keys(decorator, marker))


def _keys(decorator: ast.expr, marker: str) -> list[Key]:
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(f".{marker}")):
        return []
    return [ast.literal_eval(argument) for argument in decorator.args]
