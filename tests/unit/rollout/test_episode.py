"""One episode: what enters its messages and its transcript, and what ends it."""

import asyncio
import time
from typing import Any

import pytest

from corral.errors import EnvironmentFault
from corral.records import Finish, Outcome, SamplingParams, SpanKind
from corral.rollout.limits import Limits
from corral.rollout.seeds import derive


class Counter:
    """Counts up; the game is over at three."""

    made: list["Counter"] = []

    def __init__(self) -> None:
        self.count = -1
        self.done = False

    def reset(self, **row: Any) -> str:
        self.count, self.done = 0, False
        self.row = row
        return " Count to three."

    def add(self, n: int) -> str:
        """Add to the count.

        Args:
            n: How much to add.
        """
        self.count += n
        self.done = self.count >= 3
        return f"count is {self.count}"

    def get_reward(self) -> float:
        return self.count / 3

    @property
    def metrics(self) -> dict[str, float]:
        return {"count": float(self.count)}


@pytest.mark.contract(20)
async def test_a_conversation_with_a_tool_has_every_token_once(table: Any) -> None:
    call = table.call("add", n=2)
    episode = await table.one(call, "Two.", factory=Counter)
    assert episode.outcome is Outcome.FINISHED
    assert table.roles(episode) == ["user", "assistant", "tool", "assistant"]
    assert episode.messages[0]["content"] == "Play. Count to three."
    assert episode.messages[2] == {"role": "tool", "name": "add", "content": "count is 2"}
    kinds = [span.kind for span in episode.transcript.spans]
    assert kinds == [SpanKind.PROMPT, SpanKind.SAMPLED, SpanKind.TOOL, SpanKind.SAMPLED]
    sampled = [s.ids for s in episode.transcript.spans if s.kind is SpanKind.SAMPLED]
    end = "<|im_end|>"
    assert [list(ids) for ids in sampled] == [table.ids_of(call + end), table.ids_of("Two." + end)]
    assert (episode.turns, episode.tools.calls, episode.tools.failures) == (2, 1, 0)
    assert (episode.rewards, episode.metrics) == ({"Counter": 2 / 3}, {"count": 2.0})
    assert episode.completion_start == 1


async def test_an_environment_that_tells_its_parts_apart_has_a_column_for_each(table: Any) -> None:
    class Parted(Counter):
        @property
        def reward_parts(self) -> dict[str, float]:
            return {"two": min(self.count, 2) / 3, "more": max(self.count - 2, 0) / 3}

        def get_reward(self) -> float:
            return sum(self.reward_parts.values())

    episode = await table.one(table.call("add", n=3), factory=Parted, stop_when_done=True)
    assert episode.rewards == {"two": pytest.approx(2 / 3), "more": pytest.approx(1 / 3)}


async def test_parts_that_are_not_the_reward_are_a_fault(table: Any) -> None:
    class Wrong(Counter):
        reward_parts = {"two": 7.0}

    with pytest.raises(EnvironmentFault, match=r"reward_parts \{'two': 7.0\} add up to 7.0"):
        await table.one("Nothing.", factory=Wrong)


@pytest.mark.contract(20)
@pytest.mark.report("P013", "P027")
async def test_the_engine_is_asked_with_the_transcript_so_far(table: Any) -> None:
    call = table.call("add", n=1)
    episode = await table.one(call, call, "Two.", factory=Counter)
    prompts = [each.prompt_ids for each in table.engine.calls]
    assert prompts == [episode.transcript.ids(leaf) for leaf in (0, 2, 4)]
    assert len({each.key for each in table.engine.calls}) == 1
    assert table.engine.released == [table.engine.calls[0].key]


async def test_each_turn_has_its_own_seed(table: Any) -> None:
    await table.one(table.call("add", n=1), "One.", factory=Counter)
    assert [each.params.seed for each in table.engine.calls] == [
        derive(1000, 0, 0),
        derive(1000, 0, 1),
    ]


async def test_sampling_parameters_are_passed_on(table: Any) -> None:
    sampling = SamplingParams(
        max_new_tokens=1, stop_ids=frozenset({99}), temperature=0.5, top_k=7, min_p=0.1
    )
    await table.one("Hi.", sampling=sampling)
    params = table.engine.calls[0].params
    assert (params.temperature, params.top_k, params.min_p) == (0.5, 7, 0.1)
    assert params.stop_ids == {99} | table.chat.stop_ids


@pytest.mark.contract(8)
async def test_the_row_reaches_reset_whole(table: Any) -> None:
    player = table.player("Hi.", factory=Counter)
    (group,) = await player.play([table.task(0, secret=5)], 1)
    assert group.environments[0].row == {"prompt": "Play.", "secret": 5}


@pytest.mark.report("P069")
async def test_what_the_model_may_sample_shrinks_with_the_budget(table: Any) -> None:
    call = table.call("add", n=1)
    await table.one(call, "One.", factory=Counter, limits=Limits(episode_tokens=200))
    used = len(table.ids_of(call)) + 1 + len(table.suffix("add", "count is 1"))
    assert [each.params.max_new_tokens for each in table.engine.calls] == [200, 200 - used]


@pytest.mark.report("P043")
async def test_a_turn_has_its_own_limit(table: Any) -> None:
    episode = await table.one("Too long.", limits=Limits(turn_tokens=4, episode_tokens=100))
    assert (episode.outcome, episode.turns) == (Outcome.OUT_OF_TOKENS, 1)
    assert episode.transcript.sampled_count() == 4
    assert episode.messages[-1] == {"role": "assistant", "content": "Too "}


@pytest.mark.report("P043")
async def test_the_limit_of_a_turn_is_not_that_of_an_episode(table: Any) -> None:
    call = table.call("add", n=1)
    limits = Limits(turn_tokens=len(call) + 1, episode_tokens=1000)
    episode = await table.one(call, call, call, "One.", factory=Counter, limits=limits)
    assert (episode.outcome, episode.turns) == (Outcome.FINISHED, 4)
    said = [table.text_of(s.ids) for s in episode.transcript.spans if s.kind is SpanKind.SAMPLED]
    assert said == [f"{text}<|im_end|>" for text in (call, call, call, "One.")]
    assert episode.transcript.sampled_count() > 2 * (len(call) + 1)


@pytest.mark.contract(27)
@pytest.mark.report("P004", "P072")
async def test_a_truncated_turn_executes_nothing(table: Any) -> None:
    call = table.call("add", n=1)
    complete_but_unended = len(call)
    player = table.player(call, factory=Counter, limits=Limits(turn_tokens=complete_but_unended))
    (group,) = await player.play([table.task()], 1)
    (episode,) = group.group.episodes
    assert episode.outcome is Outcome.OUT_OF_TOKENS
    assert group.environments[0].count == 0
    assert table.roles(episode)[-1] == "assistant"
    assert "tool_calls" not in episode.messages[-1]


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.contract(25)
async def test_n_rounds_of_tools_are_n_plus_one_turns(table: Any, rounds: int) -> None:
    episode = await table.one(
        table.call("add", n=1), factory=Counter, limits=Limits(turns=rounds, episode_tokens=4000)
    )
    assert episode.outcome is Outcome.OUT_OF_TURNS
    assert (episode.turns, episode.tools.calls) == (rounds + 1, rounds)
    assert table.roles(episode)[-1] == "assistant"
    assert "tool_calls" in episode.messages[-1]


@pytest.mark.report("P143")
async def test_a_later_turn_encodes_only_what_is_new(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    tokenizer = table.chat.renderer.tokenizer
    encode = tokenizer.encode

    def counted(text: str, **options: Any) -> list[int]:
        read.append(text)
        return encode(text, **options)

    monkeypatch.setattr(tokenizer, "encode", counted)
    limits = Limits(turns=64, episode_tokens=40_000)
    episode = await table.one(table.call("add", n=0), factory=Counter, limits=limits)
    assert episode.turns == 65
    # Twice at most: the scripted model encodes what it says with the same tokenizer.
    assert sum(map(len, read)) < 2 * len(episode.transcript.ids())


@pytest.mark.parametrize(
    ("spare", "turns", "roles"),
    [
        (1, 2, ["user", "assistant", "tool", "assistant"]),  # one token left to answer with
        (0, 1, ["user", "assistant", "tool"]),  # the result fits exactly
        (-1, 1, ["user", "assistant"]),  # it does not: the result leaves the messages again
    ],
)
@pytest.mark.contract(23)
@pytest.mark.report("P081")
async def test_a_result_at_the_edge_of_the_budget(
    table: Any, spare: int, turns: int, roles: list[str]
) -> None:
    call = table.call("add", n=1)
    needed = len(table.ids_of(call)) + 1 + len(table.suffix("add", "count is 1"))
    episode = await table.one(
        call, "One.", factory=Counter, limits=Limits(episode_tokens=needed + spare)
    )
    assert episode.outcome is Outcome.OUT_OF_TOKENS
    assert (episode.turns, table.roles(episode)) == (turns, roles)
    prompt = len(episode.transcript.spans[0].ids)
    assert len(episode.transcript.ids()) - prompt <= needed + spare
    has_tool_span = any(span.kind is SpanKind.TOOL for span in episode.transcript.spans)
    assert has_tool_span is ("tool" in roles)


@pytest.mark.parametrize(("spare", "is_continued"), [(1, True), (0, False)])
@pytest.mark.contract(24)
@pytest.mark.report("P081")
async def test_a_result_at_the_edge_of_the_context(
    table: Any, spare: int, is_continued: bool
) -> None:
    call = table.call("add", n=1)
    free = await table.one(call, "One.", factory=Counter)
    upto_result = sum(len(span.ids) for span in free.transcript.spans[:3])
    episode = await table.one(call, "One.", factory=Counter, context=upto_result + spare)
    assert episode.outcome is Outcome.OUT_OF_TOKENS
    assert table.roles(episode)[-1] == "assistant"
    assert ("tool" in table.roles(episode)) is is_continued


@pytest.mark.contract(23)
@pytest.mark.report("P081")
async def test_an_enormous_result_is_rolled_back_whole(table: Any) -> None:
    def flood() -> str:
        """Say much."""
        return "x" * 10**5

    episode = await table.one(table.call("flood"), standalone=[flood], limits=Limits())
    assert (episode.outcome, table.roles(episode)) == (Outcome.OUT_OF_TOKENS, ["user", "assistant"])
    assert len(episode.transcript.spans) == 2


@pytest.mark.contract(23)
async def test_no_tool_runs_when_nothing_of_its_result_could_be_read(table: Any) -> None:
    call = table.call("add", n=1)
    player = table.player(call, factory=Counter, limits=Limits(episode_tokens=len(call) + 1))
    (group,) = await player.play([table.task()], 1)
    assert group.group.episodes[0].outcome is Outcome.OUT_OF_TOKENS
    assert group.environments[0].count == 0


async def test_a_done_environment_stops_the_episode_where_asked(table: Any) -> None:
    call = table.call("add", n=3)
    stopped = await table.one(call, "Three!", factory=Counter, stop_when_done=True)
    assert stopped.outcome is Outcome.STOPPED_BY_ENVIRONMENT
    assert table.roles(stopped) == ["user", "assistant", "tool"]
    assert stopped.transcript.spans[-1].kind is SpanKind.TOOL
    assert stopped.rewards == {"Counter": 1.0}
    spoken = await table.one(call, "Three!", factory=Counter)
    assert (spoken.outcome, spoken.turns) == (Outcome.FINISHED, 2)


async def test_the_last_result_of_a_done_environment_need_not_fit(table: Any) -> None:
    call = table.call("add", n=3)
    episode = await table.one(
        call, factory=Counter, stop_when_done=True, limits=Limits(episode_tokens=len(call) + 5)
    )
    assert episode.outcome is Outcome.STOPPED_BY_ENVIRONMENT
    assert table.roles(episode) == ["user", "assistant", "tool"]
    assert episode.transcript.spans[-1].kind is SpanKind.SAMPLED


@pytest.mark.contract(26)
@pytest.mark.report("P071")
async def test_a_malformed_call_is_answered_and_counted(table: Any) -> None:
    episode = await table.one("<tool_call>{broken</tool_call>", "Sorry.", factory=Counter)
    assert episode.outcome is Outcome.FINISHED
    assert table.roles(episode) == ["user", "assistant", "tool", "assistant"]
    assert episode.messages[2]["content"].startswith("{'error': ")
    counts = episode.tools
    assert (counts.calls, counts.failures, counts.malformed) == (1, 1, 1)


@pytest.mark.contract(27)
@pytest.mark.report("P071")
async def test_a_malformed_call_does_not_void_the_others(table: Any) -> None:
    turn = table.call("add", n=1) + "<tool_call>{</tool_call>" + table.call("add", n=1)
    episode = await table.one(turn, "Two.", factory=Counter)
    contents = [m["content"] for m in episode.messages if m["role"] == "tool"]
    assert (contents[0], contents[2]) == ("count is 1", "count is 2")
    assert (episode.tools.calls, episode.tools.malformed) == (3, 1)


@pytest.mark.parametrize(
    ("call", "content"),
    [
        (("subtract", {}), "{'error': 'Tool subtract not found.'}"),
        (("reset", {}), "{'error': 'Tool reset not found.'}"),
    ],
)
@pytest.mark.contract(16, 19)
@pytest.mark.report("P078")
async def test_a_tool_that_is_not_there_is_an_error_for_the_model(
    table: Any, call: tuple[str, dict[str, Any]], content: str
) -> None:
    episode = await table.one(table.call(call[0], **call[1]), "Oh.", factory=Counter)
    assert episode.messages[2]["content"] == content
    assert (episode.tools.calls, episode.tools.failures, episode.tools.malformed) == (1, 1, 0)


@pytest.mark.report("P078")
async def test_a_tool_that_is_not_there_does_not_void_the_others(table: Any) -> None:
    turn = table.call("subtract", n=1) + table.call("add", n=2)
    episode = await table.one(turn, "Two.", factory=Counter)
    answers = [(m["name"], m["content"]) for m in episode.messages if m["role"] == "tool"]
    assert answers == [
        ("subtract", "{'error': 'Tool subtract not found.'}"),
        ("add", "count is 2"),
    ]
    assert (episode.outcome, episode.tools.calls, episode.tools.failures) == (
        Outcome.FINISHED,
        2,
        1,
    )


async def test_made_up_tool_names_are_not_rendered(table: Any) -> None:
    before = len(table.chat.suffixes._pieces)
    for index in range(5):
        await table.one(table.call(f"made_up_{index}"), "Oh.", factory=Counter)
    assert len(table.chat.suffixes._pieces) <= before + 1


async def test_without_tools_the_content_is_what_the_model_wrote(table: Any) -> None:
    text = "<think>hm</think><answer>4</answer><tool_call>{}</tool_call>"
    episode = await table.one(text)
    assert episode.outcome is Outcome.FINISHED
    assert episode.messages[-1] == {"role": "assistant", "content": text}


@pytest.mark.report("P021")
async def test_an_overlong_prompt_is_named(table: Any) -> None:
    with pytest.raises(EnvironmentFault, match=r"prompt of task 0 has \d+ tokens.*context is 4"):
        await table.one("Hi.", context=4)


async def test_an_episode_out_of_time_keeps_its_finished_turns(table: Any) -> None:
    class Sleepy(Counter):
        async def doze(self) -> str:
            """Sleep."""
            await asyncio.sleep(30)
            return "awake"

    episode = await table.one(
        table.call("add", n=2),
        table.call("doze"),
        factory=Sleepy,
        limits=Limits(seconds=0.3, episode_tokens=4000),
    )
    assert episode.outcome is Outcome.TIMED_OUT
    assert table.roles(episode) == ["user", "assistant", "tool", "assistant"]
    assert episode.rewards == {"Sleepy": 2 / 3}
    assert 0.3 <= episode.seconds["total"] < 5


async def test_a_slow_engine_is_out_of_time_too(table: Any) -> None:
    episode = await table.one("Hi.", delay_s=30, limits=Limits(seconds=0.05))
    assert (episode.outcome, table.roles(episode)) == (Outcome.TIMED_OUT, ["user"])
    assert table.engine.released == [table.engine.calls[0].key]


async def test_an_environment_interrupted_in_a_thread_is_replaced(table: Any) -> None:
    class Stuck(Counter):
        def wait(self) -> str:
            """Wait."""
            time.sleep(0.3)
            return "done"

    player = table.player(
        table.call("wait"), factory=Stuck, limits=Limits(seconds=0.1, episode_tokens=4000)
    )
    (first,) = await player.play([table.task()], 1)
    (second,) = await player.play([table.task()], 1)
    assert first.group.episodes[0].outcome is Outcome.TIMED_OUT
    assert first.environments[0] is not second.environments[0]


async def test_time_is_told_by_part(table: Any) -> None:
    class Slow(Counter):
        def reset(self, **row: Any) -> None:
            time.sleep(0.02)
            super().reset()

        def add(self, n: int) -> str:
            """Add.

            Args:
                n: Number.
            """
            time.sleep(0.03)
            return "ok"

    episode = await table.one(table.call("add", n=1), "One.", factory=Slow, delay_s=0.01)
    seconds = episode.seconds
    assert set(seconds) == {"reset", "sample", "tools", "reward", "total"}
    assert seconds["reset"] >= 0.02
    assert seconds["sample"] >= 0.02
    assert seconds["tools"] >= 0.03
    parts = sum(value for name, value in seconds.items() if name != "total")
    assert seconds["total"] >= parts


async def test_a_finish_is_taken_from_the_engine(table: Any) -> None:
    episode = await table.one("Hi.")
    ids = episode.transcript.spans[-1].ids
    assert ids[-1] in table.chat.stop_ids
    assert table.chat.parse(ids, finish=Finish.STOP).content == "Hi."
