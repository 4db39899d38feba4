"""The page on settings says what the configurations say."""

from support import generated
from support.settings_table import PAGE, tables


def test_the_tables_are_those_of_the_code():
    current = generated.page_of(PAGE) == generated.renewed(PAGE, tables())
    assert current, "run: PYTHONPATH=tests python -m support.settings_table"
