"""Tables in the docs that say which tests show what, made from the tests' markers."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from support.generated import ROOT, page_of, renewed, table, write

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
    columns: list[str]
    cells: Callable[[Key, Item, str], list[str]]
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

    def is_current(self) -> bool:
        """Whether the page says what the tests say now."""
        return page_of(self.page) == renewed(self.page, self._tables())

    def write(self) -> None:
        """Write the page anew."""
        write(self.page, self._tables())

    def _tables(self) -> str:
        """Markdown: one table a section, one row an item."""
        tests = self.proofs()
        lines = [self.summary(tests)]
        for section in self.sections:
            rows = [
                self.cells(key, item, "<br>".join(proof.link() for proof in tests[key]) or "–")
                for key, item in section.items.items()
            ]
            lines += ["", f"### {section.title}", "", *table(self.columns, rows)]
        return "\n".join(lines)


def count_of_tests(tests: Mapping[Key, Sequence[Proof]]) -> int:
    """How many test functions show something."""
    return len({proof for proofs in tests.values() for proof in proofs})


def _marked(module: ast.Module, marker: str) -> Iterator[tuple[str, Key]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((node.name, key) for key in _keys(decorator, marker))


def _keys(decorator: ast.expr, marker: str) -> list[Key]:
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(f".{marker}")):
        return []
    return [ast.literal_eval(argument) for argument in decorator.args]
