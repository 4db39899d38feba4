import asyncio

import pytest

from corral.rollout import run_blocking


async def double(value: int) -> int:
    await asyncio.sleep(0)
    if value < 0:
        raise ValueError(value)
    return 2 * value


def test_a_coroutine_runs_from_synchronous_code() -> None:
    assert run_blocking(double(3)) == 6


async def test_a_coroutine_runs_where_a_loop_runs_already() -> None:
    assert run_blocking(double(3)) == 6
    with pytest.raises(ValueError, match="-1"):
        run_blocking(double(-1))
