"""The table of the trainer contract in the docs, made from the tests' markers.

A test that shows an item of the contract is marked ``@pytest.mark.contract(9)`` (or several
numbers). ``PYTHONPATH=tests python -m support.contract_table`` writes the page anew.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.contract_items import DIFFERS, ITEMS, LATER, SECTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "trainer-contract.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass(frozen=True, order=True)
class Proof:
    """A test that shows an item of the contract."""

    file: str
    """Relative to the repository."""
    name: str


def proofs() -> dict[int, list[Proof]]:
    """The tests of each item, sorted; read from the sources, nothing is imported."""
    found: dict[int, list[Proof]] = {number: [] for number in ITEMS}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.contract(" not in source:
            continue
        file = path.relative_to(ROOT).as_posix()
        for name, number in _marked(ast.parse(source)):
            if number not in found:
                raise ValueError(f"{file}: {name} is marked for item {number}: there are 1 to 52.")
            found[number].append(Proof(file, name))
    return {number: sorted(set(tests)) for number, tests in found.items()}


def table(tests: dict[int, list[Proof]]) -> str:
    """Markdown: one table a section, one row an item."""
    lines: list[str] = []
    for section in SECTIONS:
        lines += [f"### {section.title}", "", "| | what | shown by | status |", "|---|---|---|---|"]
        lines += [_row(number, text, tests[number]) for number, text in section.items.items()]
        lines.append("")
    return "\n".join(lines).rstrip()


def summary(tests: dict[int, list[Proof]]) -> str:
    """One sentence with the numbers."""
    shown = sum(number not in LATER for number in ITEMS)
    count = len({proof for proofs in tests.values() for proof in proofs})
    return (
        f"{shown} of {len(ITEMS)} items are shown, by {count} test functions; "
        f"{len(DIFFERS)} of them are answered otherwise on purpose, {len(LATER)} come later."
    )


def page(text: str) -> str:
    """The page with its generated part as the tests say now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tests = proofs()
    return f"{before}{BEGIN}\n{summary(tests)}\n\n{table(tests)}\n{END}{after}"


def _row(number: int, text: str, tests: list[Proof]) -> str:
    links = "<br>".join(f"[{_title(proof.name)}](../{proof.file})" for proof in tests)
    return f"| {number} | {text} | {links or '–'} | {_status(number)} |"


def _title(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


def _status(number: int) -> str:
    if number in LATER:
        return f"later: {LATER[number]}"
    return f"differs: {DIFFERS[number]}" if number in DIFFERS else "same"


def _marked(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((node.name, number) for number in _numbers(decorator))


def _numbers(decorator: ast.expr) -> list[int]:
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(".contract")):
        return []
    return [ast.literal_eval(argument) for argument in decorator.args]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
