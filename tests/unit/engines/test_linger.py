"""Quick tools are waited for, slow ones never."""

from corral.engines.torch_engine.linger import Linger


def test_nobody_is_waited_for_who_did_not_just_end_a_turn() -> None:
    linger = Linger()
    assert linger.wait_s(0.0) == 0
    linger.arrived("new", 1.0)
    assert linger.wait_s(1.0) == 0


def test_a_conversation_that_ended_a_turn_is_expected_for_some_milliseconds() -> None:
    linger = Linger()
    linger.turn_ended("a", 1.0)
    assert 0 < linger.wait_s(1.0) <= 0.005
    assert linger.wait_s(1.01) == 0


def test_waiting_ends_when_all_are_back_or_released() -> None:
    linger = Linger()
    linger.turn_ended("a", 1.0)
    linger.turn_ended("b", 1.0)
    linger.arrived("a", 1.001)
    assert linger.wait_s(1.001) > 0
    linger.released("b")
    assert linger.wait_s(1.001) == 0


def test_each_arrival_renews_the_wait() -> None:
    linger = Linger()
    for key in "abc":
        linger.turn_ended(key, 1.0)
    linger.arrived("a", 1.004)
    assert linger.wait_s(1.006) > 0


def test_slow_tools_are_not_waited_for_until_they_are_quick_again() -> None:
    linger = Linger()
    linger.turn_ended("a", 1.0)
    linger.arrived("a", 3.0)
    linger.turn_ended("a", 3.1)
    assert linger.wait_s(3.1) == 0
    for turn in range(20):
        linger.turn_ended("a", 4.0 + turn)
        linger.arrived("a", 4.0005 + turn)
    linger.turn_ended("a", 30.0)
    assert linger.wait_s(30.0) > 0


def test_those_who_never_come_are_waited_for_once() -> None:
    linger = Linger()
    waits = []
    for turn in range(5):
        linger.turn_ended(f"{turn}", float(turn))
        waits.append(linger.wait_s(float(turn)))
    assert waits[0] > 0
    assert waits[1:] == [0] * 4
