"""Shapes of model passes, chosen so that a row's numbers do not depend on who else is in the pass.

A matrix product of few rows takes other paths through a CPU's linear algebra than one of many, and
rounds differently; so does a sum over another number of keys. Who is in a pass together depends on
how quickly tools answer. With at least ``LEAST_ROWS`` rows and keys in whole steps a conversation
gets the same logprobs to the last bit in every run, and training that continues from a checkpoint
is the training that was never interrupted.
"""

LEAST_ROWS = 16
"""From here on every row of a product is computed in the same way."""

LEAST_PACKED_ROWS = 2
"""The same if all weights are packed (see ``packing.py``)."""

KEY_STEP = 64
"""Keys beyond a row's own are masked and add exactly 0, if they come in whole vectors."""

QUERY_BLOCK = 32
"""The smallest block of queries that attention on CPUs works on."""


def least_rows(*, is_packed: bool) -> int:
    """How many rows a product should have at least."""
    return LEAST_PACKED_ROWS if is_packed else LEAST_ROWS


def key_count(longest: int, capacity: int) -> int:
    """How many positions attention looks at when the longest row has ``longest``."""
    return min(_whole_steps(longest, KEY_STEP), capacity)


def pass_width(longest: int) -> int:
    """How many tokens wide a prefill is whose longest row has ``longest`` new ones.

    Attention takes queries in blocks of ``QUERY_BLOCK`` or a multiple; the last one, which is what
    is left over, must have enough rows as well.
    """
    if longest <= QUERY_BLOCK:
        return max(longest, LEAST_ROWS)
    return _whole_steps(longest, LEAST_ROWS)


def head_positions(rows: int, least: int) -> int:
    """At how many last positions of each row the output head is applied."""
    return _whole_steps(least, rows) // rows


def _whole_steps(count: int, step: int) -> int:
    return -(-count // step) * step
