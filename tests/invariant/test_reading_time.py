"""Reading a turn takes time in proportion to its length, whatever a broken model repeats in it."""

import pytest

from support.tool_fuzz.formats import chat_formats
from support.tool_fuzz.phrases import Phrases
from support.tool_fuzz.pump import STRAY, slow_texts


@pytest.mark.parametrize("name", chat_formats())
def test_four_times_the_length_takes_no_more_than_eight_times_as_long(name: str) -> None:
    """Up to a megabyte: markers without ends, brackets, quotes, backslashes, white space."""
    tried, slow = slow_texts(Phrases.of(chat_formats()[name]), STRAY)
    assert tried > 100
    assert not slow, "\n".join(map(str, slow[:5]))
