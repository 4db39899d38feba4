"""Many episodes: independence, environments, faults, retries, errors."""

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from corral.env import prepare
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from corral.records import Episode, Outcome, SamplingParams
from corral.rollout import attempts, pool, reward_functions, score
from corral.rollout.limits import Limits
from corral.rollout.player import Player


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.0)


def world(**members: Any) -> type:
    """A new environment class with one tool, which counts its instances."""

    class World:
        made: list[Any] = []
        closed: list[Any] = []

        def __init__(self) -> None:
            self.made.append(self)

        def reset(self, **row: Any) -> str | None:
            self.row = row
            return None

        def act(self) -> str:
            """Act."""
            return "acted"

        def close(self) -> None:
            self.closed.append(self)

    for name, member in members.items():
        member.__name__ = name
        setattr(World, name, member)
    return World


def raises(error: Exception) -> Any:
    def method(self: Any, **_: Any) -> Any:
        """Fail."""
        raise error

    return method


def outcomes(episodes: list[Episode]) -> list[str]:
    return [episode.outcome.value for episode in episodes]


async def test_groups_come_back_in_the_order_asked(table: Any) -> None:
    def script(key: str, prompt_ids: Any) -> list[int]:
        return table.ids_of(key.partition("#")[0] + "<|im_end|>")

    player = table.player(script=script)
    groups = await player.play([table.task(5), table.task(3)], 2)
    said = [[e.messages[-1]["content"] for e in group.group.episodes] for group in groups]
    assert said == [["5/0", "5/1"], ["3/0", "3/1"]]
    assert [[e.member for e in group.group.episodes] for group in groups] == [[0, 1], [0, 1]]
    assert [group.group.task.index for group in groups] == [5, 3]


async def test_sleeping_tools_of_many_episodes_overlap(table: Any) -> None:
    together = threading.Barrier(32, timeout=20)

    def nap() -> str:
        """Sleep until all do."""
        together.wait()
        return "slept"

    episodes = await table.episodes(table.call("nap"), "ok", standalone=[nap], tasks=4, members=8)
    assert outcomes(episodes) == ["finished"] * 32
    assert not together.broken


async def test_episodes_are_not_in_lock_step(table: Any) -> None:
    release = threading.Event()
    ended: list[int] = []

    def wait(self: Any) -> str:
        """Wait until the other episodes are over."""
        if self.row["slow"]:
            assert release.wait(5)
        return "ok"

    player = table.player(table.call("wait"), "ok", factory=world(wait=wait))
    tasks = [table.task(index, slow=index == 0) for index in range(3)]

    def on_episode(episode: Episode) -> None:
        ended.append(episode.task.index)
        if len(ended) == 2:
            release.set()

    await player.play(tasks, 1, on_episode)
    assert ended[-1] == 0


async def test_concurrency_can_be_limited(table: Any) -> None:
    running = most = 0

    async def act(self: Any) -> str:
        """Act."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return "ok"

    await table.episodes(table.call("act"), "ok", factory=world(act=act), tasks=6, max_concurrent=2)
    assert most == 2


@pytest.mark.contract(6, 7)
async def test_a_factory_is_called_once_for_each_concurrent_episode(table: Any) -> None:
    kind = world()
    player = table.player("ok", factory=kind)
    assert len(kind.made) == 1
    first = await player.play([table.task(0), table.task(1)], 2)
    second = await player.play([table.task(2), table.task(3)], 2)
    instances = [environment for group in first for environment in group.environments]
    assert instances == kind.made
    assert [environment for group in second for environment in group.environments] == instances
    assert len(kind.made) == 4
    await player.aclose()
    assert kind.closed == instances


@pytest.mark.contract(8)
async def test_tasks_are_routed_to_their_environment_by_name(table: Any) -> None:
    cats, dogs = world(), world()
    kinds = {"cat": prepare(cats), "dog": prepare(dogs)}
    player = table.player("ok", kinds=kinds)
    names = ["cat", "dog", "cat"]
    tasks = [table.task(index, environment=name) for index, name in enumerate(names)]
    groups = await player.play(tasks, 1)
    assert [type(group.environments[0]) for group in groups] == [cats, dogs, cats]
    assert (len(cats.made), len(dogs.made)) == (2, 1)
    assert dogs.made[0].row == {"prompt": "Play."}


@pytest.mark.contract(8)
async def test_a_single_environment_gets_its_environment_column(table: Any) -> None:
    kind = world()
    player = table.player("ok", factory=kind)
    await player.play([table.task(0, environment="level 1")], 1)
    assert kind.made[0].row["environment"] == "level 1"


async def test_an_unknown_environment_is_named(table: Any) -> None:
    player = table.player("ok", kinds={"cat": prepare(world())})
    with pytest.raises(UsageError, match=r"environment='bird' of task 0 is not among .* 'cat'"):
        await player.play([table.task(0, environment="bird")], 1)


async def test_a_column_reset_does_not_take_stops_the_run(table: Any) -> None:
    def reset(self: Any, prompt: str) -> None: ...

    player = table.player("ok", factory=world(reset=reset))
    with pytest.raises(UsageError, match="'secret'"):
        await player.play([table.task(0, secret=3)], 4)


@pytest.mark.contract(10)
async def test_one_fault_in_reset_leaves_a_group_of_three(table: Any) -> None:
    resets = 0

    def reset(self: Any, **_: Any) -> None:
        nonlocal resets
        resets += 1
        if kind.made.index(self) == 1:
            raise ZeroDivisionError("by zero")

    kind = world(reset=reset, get_reward=lambda self: 1.0)
    player = table.player("ok", factory=kind)
    groups = await player.play([table.task()], 4)
    episodes = groups[0].group.episodes
    assert outcomes(episodes) == ["finished", "environment_fault", "finished", "finished"]
    assert "World.reset raised ZeroDivisionError: by zero" in episodes[1].error
    assert resets == 4  # not retried
    scored = await score(groups)
    assert [one.reward for one in scored.groups[0].episodes] == [1.0, None, 1.0, 1.0]


async def test_one_fault_in_get_reward_is_not_reward_zero(table: Any) -> None:
    def get_reward(self: Any) -> float:
        if self is kind.made[0]:
            raise KeyError("score")
        return 0.5

    kind = world(get_reward=get_reward)
    groups = await table.player("ok", factory=kind).play([table.task()], 2)
    assert outcomes(groups[0].group.episodes) == ["environment_fault", "finished"]
    assert groups[0].group.episodes[0].transcript.sampled_count() > 0
    scored = await score(groups, reward_functions(lambda completions: [1.0] * len(completions)))
    assert [one.reward for one in scored.groups[0].episodes] == [None, 1.5]


@pytest.mark.contract(10)
@pytest.mark.report("P066")
async def test_a_bug_in_every_reset_stops_the_run_with_its_cause(table: Any) -> None:
    kind = world(reset=raises(AttributeError("no field 'x'")))
    with pytest.raises(
        EnvironmentFault,
        match=r"All 3 episodes failed.*World\.reset raised AttributeError: no field",
    ) as caught:
        await table.episodes("ok", factory=kind, members=3)
    assert isinstance(caught.value.__cause__, EnvironmentFault)


async def test_where_no_episode_is_needed_failed_ones_are_data(table: Any) -> None:
    kind = world(reset=raises(AttributeError("no field 'x'")))
    episodes = await table.episodes("ok", factory=kind, members=3, needs_an_episode=False)
    assert outcomes(episodes) == ["environment_fault"] * 3
    with pytest.raises(InfrastructureFault, match="All 2 episodes failed"):
        await table.episodes("ok", members=2, fail_first=100, retries=0, needs_an_episode=False)


@pytest.mark.report("P069")
async def test_an_engine_failure_is_retried_from_nothing(table: Any) -> None:
    kind = world()
    episode = await table.one(table.call("act"), "ok", factory=kind, fail_first=1)
    assert episode.outcome is Outcome.FINISHED
    failed, first, _second = table.engine.calls
    assert failed.key != first.key
    assert failed.params.seed == first.params.seed
    assert failed.prompt_ids == first.prompt_ids
    assert len(kind.made) == 2
    assert kind.closed == kind.made[:1]
    assert {failed.key, first.key} == set(table.engine.released)
    assert episode.turns == 2


@pytest.mark.report("P069")
async def test_a_failure_in_the_middle_starts_over_with_the_same_seeds(table: Any) -> None:
    def act(self: Any) -> str:
        """Act."""
        if len(kind.made) == 1:
            raise ConnectionError("socket closed")
        return "acted"

    kind = world(act=act)
    episode = await table.one(table.call("act"), "ok", factory=kind)
    assert outcomes([episode]) == ["finished"]
    assert (episode.turns, episode.tools.calls) == (2, 1)
    seeds = [each.params.seed for each in table.engine.calls]
    assert seeds[0] == seeds[1] != seeds[2]
    assert [each.params.max_new_tokens for each in table.engine.calls][:2] == [4000, 4000]


@pytest.mark.parametrize("step", ["reset", "act", "get_reward"])
async def test_lasting_infrastructure_faults_leave_their_group(
    table: Any, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def fails(self: Any) -> None:
        """Fail in the first task."""
        nonlocal calls
        if self.row["is_bad"]:
            calls += 1
            raise ConnectionError("down")

    def reset(self: Any, **row: Any) -> None:
        self.row = row
        if step == "reset":
            fails(self)

    members = {"reset": reset} if step == "reset" else {"reset": reset, step: fails}
    kind = world(**members)
    player = table.player(table.call("act"), "ok", factory=kind, retries=2)
    tasks = [table.task(0, is_bad=True), table.task(1, is_bad=False)]
    with caplog.at_level(logging.WARNING):
        bad, good = await player.play(tasks, 1)
    episode = bad.group.episodes[0]
    assert outcomes([episode, *good.group.episodes]) == ["infrastructure_fault", "finished"]
    assert calls == 3
    assert "down" in episode.error
    assert (episode.transcript.spans, episode.turns, episode.rewards) == ((), 0, {})
    assert bad.environments == (None,)
    assert "attempt 3 of 3" in caplog.text
    scored = await score([bad, good], reward_functions(lambda completions: [1.0]))
    assert scored.groups[0].episodes[0].reward is None


async def test_when_all_infrastructure_is_down_the_run_stops(table: Any) -> None:
    with pytest.raises(InfrastructureFault, match=r"All 2 episodes failed.*scripted failure"):
        await table.episodes("ok", members=2, fail_first=100, retries=1)
    assert len(table.engine.calls) == 4


async def test_a_hanging_reset_is_a_fault_of_the_infrastructure(table: Any) -> None:
    async def reset(self: Any, **_: Any) -> None:
        if len(kind.made) == 1:
            await asyncio.sleep(30)

    kind = world(reset=reset)
    episode = await table.one("ok", factory=kind, limits=Limits(seconds=0.05))
    assert episode.outcome is Outcome.FINISHED
    assert len(kind.made) == 2


async def test_an_unexpected_error_cancels_the_rest_and_closes(table: Any) -> None:
    cancelled: list[str] = []
    all_here = asyncio.Barrier(3)

    class Engine:
        async def sample(self, prompt_ids: Any, params: Any, *, key: str) -> Any:
            await all_here.wait()
            if key.startswith("1/"):
                raise RuntimeError("out of memory")
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(key)
                raise

        def release(self, key: str) -> None: ...

        def max_context(self) -> int:
            return 10**6

    kind = world()
    player = Player(Engine(), table.chat, kinds={None: prepare(kind)})
    with pytest.raises(RuntimeError, match="out of memory"):
        await player.play([table.task(index) for index in range(3)], 1)
    assert len(cancelled) == 2
    assert len(kind.closed) == 3
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_an_error_in_the_callback_is_not_lost(table: Any) -> None:
    def on_episode(episode: Episode) -> None:
        raise LookupError("progress bar")

    with pytest.raises(LookupError, match="progress bar"):
        await table.player("ok").play([table.task()], 2, on_episode)


async def test_cancelling_play_cancels_its_episodes(table: Any) -> None:
    all_here = asyncio.Barrier(5)

    async def act(self: Any) -> str:
        """Act for ever."""
        await all_here.wait()
        await asyncio.sleep(30)
        return "never"

    player = table.player(table.call("act"), factory=world(act=act))
    playing = asyncio.create_task(player.play([table.task()], 4))
    await all_here.wait()
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert len(table.engine.released) == 4


async def test_an_environment_still_being_constructed_is_closed_too(table: Any) -> None:
    begun = threading.Event()

    def slow(self: Any) -> None:
        if kind.made:
            begun.set()
            time.sleep(0.05)
        kind.made.append(self)

    kind = world(__init__=slow)
    player = table.player("ok", factory=kind)
    playing = asyncio.create_task(player.play([table.task()], 2))
    await asyncio.to_thread(begun.wait)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert len(kind.made) == len(kind.closed) == 2


async def test_a_player_plays_one_call_at_a_time(table: Any) -> None:
    player = table.player("ok", delay_s=0.02)
    playing = asyncio.create_task(player.play([table.task()], 1))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="playing already"):
        await player.play([table.task()], 1)
    await playing


async def test_sampling_and_limits_can_differ_for_one_call(table: Any) -> None:
    player = table.player("hello")
    greedy = SamplingParams(max_new_tokens=1, stop_ids=frozenset(), temperature=0.0)
    (group,) = await player.play(
        [table.task()], 1, sampling=greedy, limits=Limits(episode_tokens=3)
    )
    assert table.engine.calls[0].params.temperature == 0.0
    assert group.group.episodes[0].transcript.sampled_count() == 3
    await player.play([table.task()], 1)
    assert table.engine.calls[1].params.temperature == 1.0


async def test_playing_again_gives_the_same_episodes(table: Any) -> None:
    def script(key: str, prompt_ids: Any) -> list[int]:
        return table.ids_of("x" * (len(prompt_ids) % 7) + "<|im_end|>")

    player = table.player(script=script)
    tasks = [table.task(index) for index in range(3)]
    runs = [await player.play(tasks, 2) for _ in range(2)]
    first, second = (
        [[e.transcript for e in group.group.episodes] for group in groups] for groups in runs
    )
    assert first == second
    seeds = [each.params.seed for each in table.engine.calls]
    assert sorted(seeds[:6]) == sorted(seeds[6:])
    assert len(set(seeds)) == 6


async def test_a_player_outlives_its_event_loop(table: Any) -> None:
    player = table.player(table.call("act"), "ok", factory=world())

    def play() -> list[Any]:
        return asyncio.run(player.play([table.task(0), table.task(1)], 4))

    for _ in range(2):
        groups = await asyncio.to_thread(play)
        assert outcomes(groups[0].group.episodes) == ["finished"] * 4


async def test_a_constructor_that_fails_later_is_a_fault_of_its_episode(table: Any) -> None:
    addresses = iter(["a", "b"])

    def init(self: Any) -> None:
        self.address = next(addresses)

    groups = await table.player("ok", factory=world(__init__=init)).play([table.task()], 3)
    assert outcomes(groups[0].group.episodes) == ["finished", "finished", "environment_fault"]
    assert groups[0].environments[2] is None


async def test_an_environment_that_hangs_when_closed_is_left_behind(
    table: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def close(self: Any) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(pool, "CLOSE_TIMEOUT_S", 0.01)
    player = table.player("ok", factory=world(close=close))
    await player.play([table.task()], 1)
    with caplog.at_level(logging.WARNING):
        await player.aclose()
    assert "World.close took longer than 0.01 s" in caplog.text


async def test_no_tasks_are_no_groups(table: Any) -> None:
    assert await table.player("ok").play([], 2) == []


@pytest.mark.parametrize("options", [{"retries": -1}, {"max_concurrent": 0}])
def test_impossible_options_are_named(table: Any, options: dict[str, int]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=name):
        table.player("ok", **options)


def test_a_tool_that_an_environment_was_prepared_without_is_named(table: Any) -> None:
    def look() -> str:
        """Look."""
        return "nothing"

    with pytest.raises(UsageError, match="'look' would not be offered in World"):
        table.player("ok", kinds={None: prepare(world())}, tools=[look])
    table.player("ok", kinds={None: prepare(world(), standalone=[look])}, tools=[look])


async def test_a_group_without_members_is_refused(table: Any) -> None:
    with pytest.raises(UsageError, match="members=0"):
        await table.player("ok").play([table.task()], 0)
