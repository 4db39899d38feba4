from hypothesis import given
from hypothesis import strategies as st

from corral.rollout.seeds import derive, shuffled

PART = st.integers() | st.text(max_size=8)


def test_a_seed_is_the_same_in_every_process() -> None:
    assert derive(0, "task", 3) == 5935705453681899466


@given(st.lists(PART, max_size=4), st.lists(PART, max_size=4))
def test_different_parts_give_different_seeds(left: list, right: list) -> None:
    assert (derive(*left) == derive(*right)) == (left == right)


def test_parts_are_told_apart_by_type_and_position() -> None:
    assert len({derive(1, 23), derive(12, 3), derive("1", 23), derive(123), derive(23, 1)}) == 5


@given(st.lists(PART))
def test_a_seed_fits_a_signed_64_bit_integer(parts: list) -> None:
    assert 0 <= derive(*parts) < 2**63


def test_a_shuffle_depends_on_its_parts_alone() -> None:
    items = list(range(20))
    first, again, other = (shuffled(items, 0, "epoch", n) for n in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == items == list(range(20))
