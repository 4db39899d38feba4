"""The table of the trainer contract in the docs, made from the tests' markers.

A test that shows an item of the contract is marked ``@pytest.mark.contract(9)`` (or several
numbers). ``PYTHONPATH=tests python -m support.contract_table`` writes the page anew.
"""

from collections.abc import Mapping, Sequence

from support.contract_items import DIFFERS, LATER, SECTIONS
from support.proof_table import Proof, ProofTable, count_of_tests


def _summary(tests: Mapping[int, Sequence[Proof]]) -> str:
    shown = sum(number not in LATER for number in tests)
    return (
        f"{shown} of {len(tests)} items are shown, by {count_of_tests(tests)} test functions; "
        f"{len(DIFFERS)} of them are answered otherwise on purpose, {len(LATER)} come later."
    )


def _cells(number: int, text: str, links: str) -> list[str]:
    return [str(number), text, links, _status(number)]


def _status(number: int) -> str:
    if number in LATER:
        return f"later: {LATER[number]}"
    return f"differs: {DIFFERS[number]}" if number in DIFFERS else "same"


CONTRACT = ProofTable[str](
    page="docs/trainer-contract.md",
    marker="contract",
    sections=SECTIONS,
    columns=["", "what", "shown by", "status"],
    cells=_cells,
    summary=_summary,
)

if __name__ == "__main__":
    CONTRACT.write()
