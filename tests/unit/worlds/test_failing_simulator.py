"""A simulator that fails is a fault of what is beneath, and never a mistake of the model."""

from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from corral.errors import InfrastructureFault
from corral.worlds.gymnasium.env import GymnasiumEnvironment
from corral.worlds.world import was_won


def broken(*_: Any) -> Any:
    raise RuntimeError("sim broke")


@pytest.mark.parametrize(
    "step", [broken, lambda _: (0, 1.0, False, False), lambda _: (0, None, False, False, {})]
)
def test_a_step_that_fails_is_an_infrastructure_fault(step: Any):
    env: Any = object.__new__(GymnasiumEnvironment)
    env._gym_id = "Broken-v0"
    env._actions = SimpleNamespace(read=lambda arguments: arguments["action"])
    env._env = SimpleNamespace(step=step)
    env._begin()
    with pytest.raises(InfrastructureFault, match=r"Broken-v0: step\(1\) failed with"):
        env._act({"action": 1})
    assert (env.total, env.steps, env.done) == (0.0, 0, False)


def test_what_says_won_is_read_as_a_truth_and_may_fail(caplog: pytest.LogCaptureFixture):
    class Raising:
        won = property(broken)

    assert was_won(SimpleNamespace(won=numpy.bool_(True)))
    assert not was_won(SimpleNamespace(won=lambda: True))
    assert not was_won(SimpleNamespace())
    assert not was_won(Raising())
    assert "Raising.won raised" in caplog.text
