"""Whatever the model says and whatever the limits are, tokens and messages agree."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.records import Finish, Outcome, SpanKind, Transcript
from corral.rollout.limits import Limits
from corral.rollout.samples import samples


class Echo:
    def reset(self, **_: Any) -> str:
        self.said: list[str] = []
        return ""

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        self.said.append(text)
        if text == "boom":
            raise ValueError(text)
        return text

    async def later(self) -> None:
        """Say nothing, later."""
        await asyncio.sleep(0)

    @property
    def done(self) -> bool:
        return "stop" in self.said


CALLS = [
    '<tool_call>{"name": "say", "arguments": {"text": "' + text + '"}}</tool_call>'
    for text in ("hello", "boom", "stop", "long " * 20)
] + [
    '<tool_call>{"name": "later", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "nothing", "arguments": {}}</tool_call>',
    "<tool_call>{broken}</tool_call>",
    "<tool_call>",
    "<think>hm</think>",
    "text",
    "",
]
TURN = st.lists(st.sampled_from(CALLS), max_size=3).map("".join)
LIMITS = st.builds(
    Limits,
    turns=st.none() | st.integers(0, 3),
    turn_tokens=st.none() | st.integers(1, 300),
    episode_tokens=st.integers(1, 600),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(TURN, min_size=1, max_size=6), limits=LIMITS, stops=st.booleans())
@pytest.mark.contract(20)
@pytest.mark.report("P002", "P018")
def test_tokens_and_messages_agree(
    table: Any, turns: list[str], limits: Limits, stops: bool
) -> None:
    player = table.player(*turns, "end", factory=Echo, limits=limits, stop_when_done=stops)
    (group,) = asyncio.run(player.play([table.task()], 1))
    (episode,) = group.group.episodes
    spans = episode.transcript.spans

    # The budget holds, whatever happened.
    assert len(episode.transcript.ids()) - len(spans[0].ids) <= limits.episode_tokens
    sampled = [index for index, span in enumerate(spans) if span.kind is SpanKind.SAMPLED]
    assert len(sampled) == episode.turns == len(table.engine.calls)
    for index, call in zip(sampled, table.engine.calls, strict=True):
        assert call.prompt_ids == Transcript(spans[:index]).ids()
        assert len(spans[index].ids) <= call.params.max_new_tokens

    # Each sampled span is one assistant message, each tool span the results that follow it.
    expected = list(episode.messages[: episode.completion_start])
    for index in sampled:
        ended = spans[index].ids[-1] in table.chat.stop_ids
        finish = Finish.STOP if ended else Finish.LENGTH
        expected.append(table.chat.parse(spans[index].ids, finish=finish).as_message())
        results = list(episode.messages[len(expected) :])
        results = results[: next((i for i, m in enumerate(results) if m["role"] != "tool"), 99)]
        expected += results
        if index + 1 < len(spans):
            names = {"say", "later"}
            shown = [m if m["name"] in names else {**m, "name": "unknown"} for m in results]
            assert spans[index + 1].ids == tuple(table.chat.suffix_ids(shown))
        else:
            assert not results or episode.outcome is Outcome.STOPPED_BY_ENVIRONMENT
    assert list(episode.messages) == expected

    # Every sampled token is trained once, and no other.
    rows = samples([group.group], [1.0], stop_ids=table.chat.stop_ids)
    trained = [t for row in rows for t, m in zip(row.ids, row.loss_mask, strict=True) if m]
    assert trained == [token for index in sampled for token in spans[index].ids]
