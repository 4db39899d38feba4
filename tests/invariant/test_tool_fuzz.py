"""Whatever a model writes as a tool call: nothing raises, nothing cut runs, each call is answered.

A slice of ``benchmarks/fuzz_tools.py``, which makes a hundred thousand of them.
"""

import pytest

from corral.chat.calls import SYNTAXES
from support.tool_fuzz.run import run_fuzz

NAMES = [syntax.name for syntax in SYNTAXES]
TURNS = 2000


@pytest.mark.parametrize("name", NAMES)
def test_hostile_calls_are_answered_and_never_do_what_they_must_not(name: str) -> None:
    seen = run_fuzz(name, count=TURNS // len(NAMES), seed=7)
    assert not seen.wrong, "\n".join(seen.wrong[:5])
    assert seen.turns["valid"], "nothing here was well-formed, so nothing shows that calls run"
    assert min(seen.executed, seen.refused, seen.malformed) > 5
