"""Environments bound to a thread, as SQLite's connections are, play as they do in one thread."""

import asyncio
import sqlite3
import threading
from typing import Any

import pytest

from corral.env import prepare
from corral.errors import InfrastructureFault
from corral.records import Outcome
from corral.rollout import attempts
from corral.rollout.limits import Limits


class Bank:
    """Keeps accounts in SQLite, opened in the constructor."""

    closed: list[int] = []

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table account (name text, amount integer)")

    def reset(self, start: int, **row: Any) -> str:
        self.db.execute("delete from account")
        self.db.execute("insert into account values ('you', ?)", (start,))
        return f"You have {start}."

    def deposit(self, amount: int) -> int:
        """Pay in.

        Args:
            amount: How much.
        """
        self.db.execute("update account set amount = amount + ?", (amount,))
        return self._amount()

    def get_reward(self) -> float:
        return float(self._amount())

    def close(self) -> None:
        self.closed.append(self._amount())
        self.db.close()

    def _amount(self) -> int:
        return self.db.execute("select amount from account").fetchone()[0]


async def test_sqlite_opened_in_the_constructor_is_used_to_the_end(table: Any) -> None:
    Bank.closed.clear()
    player = table.player(table.call("deposit", amount=5), "ok", factory=Bank)
    for _ in range(2):  # instances are used again
        groups = await player.play([table.task(0, start=10), table.task(1, start=20)], 3)
        episodes = [episode for group in groups for episode in group.group.episodes]
        assert [episode.outcome for episode in episodes] == [Outcome.FINISHED] * 6
        assert [episode.rewards for episode in episodes] == [{"Bank": 15.0}] * 3 + [
            {"Bank": 25.0}
        ] * 3
    await player.aclose()
    assert sorted(Bank.closed) == [15] * 3 + [25] * 3


async def test_a_class_that_says_so_shares_threads_and_others_end_theirs(table: Any) -> None:
    class Loose(Bank):
        REQUIRES_OWN_THREAD = False

        def __init__(self) -> None:
            self.db = sqlite3.connect(":memory:", check_same_thread=False)
            self.db.execute("create table account (name text, amount integer)")

    before = set(threading.enumerate())
    homes = [prepare(Bank).construct() for _ in range(5)]
    own = set(threading.enumerate()) - before
    assert len(own) == 5
    assert prepare(Loose).construct().thread is prepare(Loose).construct().thread
    for home in homes:
        home.leave()
    for thread in own:
        thread.join(5)
    assert not any(thread.is_alive() for thread in own)


async def test_an_environment_that_hangs_in_reset_is_closed_all_the_same(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.0)
    gate, closed = threading.Event(), list[int]()

    class Hangs:
        def reset(self, **row: Any) -> None:
            gate.wait(10)

        def look(self) -> str:
            """Look."""
            return "nothing"

        def close(self) -> None:
            closed.append(id(self))

    limits = Limits(seconds=0.2, episode_tokens=4000)
    player = table.player("ok", factory=Hangs, limits=limits, retries=1)
    async with asyncio.timeout(5):  # less than what closing may take
        with pytest.raises(InfrastructureFault, match="took longer"):
            await player.play([table.task(0)], 1)
    gate.set()
    assert len(set(closed)) == 2
    await player.aclose()


async def test_a_hung_tool_does_not_keep_the_reward_from_being_asked(table: Any) -> None:
    gate = threading.Event()

    class Hangs:
        def reset(self, **row: Any) -> None: ...

        def hang(self) -> str:
            """Hang."""
            gate.wait(10)
            return "late"

        def get_reward(self) -> float:
            return 0.5

    player = table.player(
        table.call("hang"), factory=Hangs, limits=Limits(seconds=0.2, episode_tokens=4000)
    )
    (group,) = await player.play([table.task(0)], 1)
    gate.set()
    (episode,) = group.group.episodes
    assert (episode.outcome, episode.rewards) == (Outcome.TIMED_OUT, {"Hangs": 0.5})
    await player.aclose()
