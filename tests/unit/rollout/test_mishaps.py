"""What goes wrong in one episode stays there, and what user code does to its arguments, too."""

import threading
from typing import Any

import pytest

from corral.env import BoundTools
from corral.records import Outcome
from corral.rollout import attempts, reward_functions, score
from corral.rollout.limits import Limits

OUTCOMES = Outcome.FINISHED, Outcome.ENVIRONMENT_FAULT


class Speaks:
    """Returns from ``reset`` what the row says."""

    def reset(self, shown: Any = None, **row: Any) -> Any:
        return shown


@pytest.mark.parametrize(
    ("shown", "error"),
    [({"board": []}, "Return the text to show the model"), ("long " * 2000, "context is 5000")],
)
@pytest.mark.report("P021", "P136")
async def test_a_prompt_that_cannot_be_played_costs_its_own_episode(
    table: Any, shown: Any, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    player = table.player("ok", factory=Speaks, context=5000)
    tasks = [table.task(0), table.task(1, shown=shown)]
    good, bad = [group.group.episodes[0] for group in await player.play(tasks, 1)]
    assert (good.outcome, bad.outcome) == OUTCOMES
    assert error in bad.error
    assert "1 of 2 episodes leave their groups. The first, task 1, member 0" in caplog.text


@pytest.mark.report("P102")
async def test_the_reward_waits_for_the_call_that_time_interrupted(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted, events = threading.Event(), list[str]()
    settled = BoundTools.settled

    def is_waited_for(tools: BoundTools) -> Any:
        interrupted.set()
        return settled(tools)

    monkeypatch.setattr(BoundTools, "settled", is_waited_for)

    class Slow:
        def reset(self, **row: Any) -> None: ...

        def move(self) -> str:
            """Move."""
            interrupted.wait(20)
            events.append("moved")
            return "moved"

        def get_reward(self) -> float:
            events.append("scored")
            return 0.5

    limits = Limits(seconds=1.0, episode_tokens=4000)
    episode = await table.one(table.call("move"), factory=Slow, limits=limits)
    assert (episode.outcome, episode.rewards) == (Outcome.TIMED_OUT, {"Slow": 0.5})
    assert events == ["moved", "scored"]


async def test_pauses_between_attempts_double_up_to_a_limit(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(attempts.asyncio, "sleep", sleep)
    monkeypatch.setattr(attempts, "LONGEST_PAUSE_S", 3.0)
    episode = await table.one("ok", fail_first=5, retries=5)
    assert episode.outcome is Outcome.FINISHED
    assert [pause for pause in pauses if pause] == [0.5, 1.0, 2.0, 3.0, 3.0]


async def test_what_a_reward_function_does_to_its_arguments_no_other_sees(table: Any) -> None:
    def rude(prompts: Any, completions: Any, completion_ids: Any, words: Any) -> list[float]:
        for each in (prompts, completions):
            each[0][0]["content"] = "changed"
            each[0].append({"role": "user", "content": "added"})
        completion_ids[0].clear()
        words[0].append("b")
        return [1.0]

    def looks(prompts: Any, completions: Any, completion_ids: Any, words: Any) -> list[float]:
        seen.append((prompts, completions, completion_ids, words))
        return [1.0]

    seen: list[Any] = []
    prompt = [{"role": "user", "content": "Play."}]
    groups = await table.player("ok").play([table.task(0, prompt=prompt, words=["a"])], 1)
    scored = await score(groups, reward_functions([rude, looks]))
    ((prompts, completions, ids, words),) = seen
    assert prompts == [[{"role": "user", "content": "Play."}]]
    assert completions == [[{"role": "assistant", "content": "ok"}]]
    assert ids[0]
    assert words == [["a"]]
    (episode,) = scored.groups[0].episodes
    assert episode.messages[-1] == {"role": "assistant", "content": "ok"}
    assert episode.task.columns["words"] == ["a"]


@pytest.mark.report("P081")
async def test_a_result_that_cannot_fit_is_not_even_tokenised(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(table.chat.renderer.tokenizer)
    encode, lengths = kind.encode, list[int]()

    def measured(tokenizer: Any, text: str, **options: Any) -> list[int]:
        lengths.append(len(text))
        return encode(tokenizer, text, **options)

    monkeypatch.setattr(kind, "encode", measured)

    class Library:
        def reset(self, **row: Any) -> None: ...

        def read(self) -> str:
            """Read it all."""
            return "x" * 3_000_000

    episode = await table.one(table.call("read"), "done", factory=Library)
    assert episode.outcome is Outcome.OUT_OF_TOKENS
    assert [message["role"] for message in episode.messages][-1] == "assistant"
    assert max(lengths) < 3_000_000


async def test_a_result_without_room_is_told_once_for_each_tool(
    table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> str:
        """Read."""
        return "x" * 1_000_000

    def peek() -> str:
        """Peek."""
        return "y" * 5000

    says = table.call("peek") + table.call("read"), table.call("peek")
    for turns in (says[:1], says[:1], says[1:]):
        player = table.player(*turns, standalone=[read, peek])
        for _ in range(2):
            (group,) = await player.play([table.task()], 3)
            assert {e.outcome for e in group.group.episodes} == {Outcome.OUT_OF_TOKENS}
    told = [record.getMessage() for record in caplog.records]
    assert [line[:56] for line in told] == [
        *["A result of the tool 'read' has 1000000 characters, for "] * 2,
        "A result of the tool 'peek' has 5000 characters, for whi",
    ]
    assert "an episode has 4000 tokens in all" in told[0]


async def test_an_answer_to_a_malformed_call_without_room_is_named_as_that(
    table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> str:
        """Read."""
        return "x"

    turn = "<tool_call>" + "x" * 40 + "</tool_call>"
    limits = Limits(episode_tokens=len(turn) + 40)
    await table.one(turn, limits=limits, standalone=[read])
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("An answer to a malformed call has ")
