"""The page on faults of others says what the tests show."""

from support.report_table import REPORTS


def test_the_table_is_that_of_the_tests():
    assert REPORTS.is_current(), "run: PYTHONPATH=tests python -m support.report_table"


def test_every_fault_is_shown_does_not_arise_or_comes_later():
    tests = REPORTS.proofs()
    left = [
        key
        for key, item in REPORTS.items.items()
        if not (tests[key] or item.later or item.note.startswith("does not arise"))
    ]
    assert left == []
