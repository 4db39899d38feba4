"""The page on the trainer contract says what the tests show."""

import pytest

from support.contract_items import DIFFERS, ITEMS, LATER
from support.contract_table import CONTRACT
from support.docs_blocks import text_of


def test_the_table_is_that_of_the_tests():
    assert CONTRACT.is_current(), "run: PYTHONPATH=tests python -m support.contract_table"


def test_every_item_is_shown_by_a_test_or_comes_later():
    assert list(ITEMS) == list(range(1, 53))
    assert set(LATER) <= set(ITEMS)
    tests = CONTRACT.proofs()
    assert [number for number in ITEMS if not tests[number] and number not in LATER] == []


@pytest.mark.parametrize("number", DIFFERS)
def test_every_difference_is_explained_to_those_who_come_from_trl(number: int):
    assert number not in LATER
    assert f"item {number})" in text_of("docs/coming-from-trl.md")
