"""The table of faults that others reported in the docs, made from the tests' markers.

A test that reproduces that kind of fault, and shows that it does no harm here, is marked
``@pytest.mark.report("P001")`` (or several). ``PYTHONPATH=tests python -m support.report_table``
writes the page anew.
"""

from collections.abc import Mapping, Sequence

from support.proof_table import Proof, ProofTable, count_of_tests
from support.report_items import SECTIONS, Report
from support.report_items_around import SECTIONS_AROUND


def _summary(tests: Mapping[str, Sequence[Proof]]) -> str:
    later = sum(bool(item.later) for item in REPORTS.items.values())
    return (
        f"{len(tests)} faults, {len(tests) - later} of them answered, by {count_of_tests(tests)} "
        f"test functions; {later} wait, wholly or partly, for something that is not there yet."
    )


def _cells(key: str, item: Report, links: str) -> list[str]:
    repository, _, number = item.source.partition("#")
    link = f"[{key}](https://github.com/{repository}/issues/{number})"
    return [link, item.what, links, f"later: {item.later}" if item.later else item.note]


REPORTS = ProofTable[Report](
    page="docs/field-reports.md",
    marker="report",
    sections=(*SECTIONS, *SECTIONS_AROUND),
    columns=["", "what went wrong elsewhere", "shown by", "how"],
    cells=_cells,
    summary=_summary,
)

if __name__ == "__main__":
    REPORTS.write()
