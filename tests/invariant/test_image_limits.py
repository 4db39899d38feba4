"""Images at the limits of an episode: shown whole, or not at all."""

import asyncio
from functools import cache
from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.env import prepare
from corral.errors import EnvironmentFault
from corral.records import Episode, Group, Outcome, Sample, SamplingParams, SpanKind, Task, ToolCall
from corral.rollout import Limits, Player, samples
from support.forced_engine import ForcedEngine, ForcedTurn
from support.gallery import picture
from support.tiny_vlms import FAMILIES, tiny_vlm


class Album:
    """Shows three pictures and texts at once, or something else."""

    def reset(self, shown: str = "", **row: Any) -> Any:
        self.opened = 0
        return picture(1)

    def open(self, page: int) -> Any:
        """Open a page.

        Args:
            page: Its number.
        """
        self.opened += 1
        first, second, third = (picture(page + n, width=32, height=32) for n in range(3))
        return ["A page:", first, {"type": "text", "text": "then"}, second, third, "and no more."]

    def look(self, what: str) -> Any:
        """Look at something that cannot be shown.

        Args:
            what: What it is.
        """
        return [{"type": "image", "image": "broken"} if what == "image" else {"type": what}]


@cache
def made(family: str) -> tuple[Any, ChatFormat]:
    """One model and one format for all episodes, so that equal images are one object."""
    model, processor = tiny_vlm(family)
    return model, ChatFormat.for_tokenizer(processor, tools=prepare(Album).tools.schemas)


def play(family: str, *calls: ToolCall, **limits: Any) -> Episode:
    """An episode with one call a turn, then a last word."""
    model, chat = made(family)

    def turn_of(conversation: str, turn: int) -> ForcedTurn:
        called = [call.as_message_part() for call in calls[turn : turn + 1]]
        content = "" if called else "done"
        message: Any = {"role": "assistant", "content": content, "tool_calls": called}
        return ForcedTurn(ids=tuple(chat.turn_ids(message)))

    forced = ForcedEngine(model, turn_of)
    player = Player(
        forced,
        chat,
        kinds={None: prepare(Album)},
        limits=Limits(**({"episode_tokens": 900} | limits)),
        sampling=SamplingParams(max_new_tokens=1, stop_ids=chat.stop_ids),
    )
    task = Task(index=0, prompt=({"role": "user", "content": "Look."},), seed=1)

    async def run() -> Episode:
        (played,) = await player.play([task], 1)
        await player.aclose()
        await forced.aclose()
        (episode,) = played.group.episodes
        return episode

    return asyncio.run(run())


def row_of(episode: Episode) -> Sample:
    group = Group(task=episode.task, episodes=(episode,))
    (row,) = samples([group], [1.0], stop_ids=())
    return row


OPEN = ToolCall(name="open", arguments={"page": 5})


@pytest.mark.contract(23)
@pytest.mark.report("P081")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_with_images_that_does_not_fit_is_rolled_back_whole(family: str) -> None:
    whole = play(family, OPEN)
    turn, result, answer = whole.transcript.spans[1:]
    assert whole.outcome is Outcome.FINISHED
    assert [span.kind for span in (turn, result, answer)] == [
        *(SpanKind.SAMPLED, SpanKind.TOOL, SpanKind.SAMPLED)
    ]
    assert len(result.images) == 3
    exactly = len(turn.ids) + len(result.ids)

    cut = play(family, OPEN, episode_tokens=exactly - 1)
    assert cut.outcome is Outcome.OUT_OF_TOKENS
    assert cut.transcript.spans == whole.transcript.spans[:2]
    assert cut.messages[-1]["role"] == "assistant"
    assert len(row_of(cut).images) == 1  # that of reset

    for tokens in (exactly, exactly + 1):
        kept = play(family, OPEN, episode_tokens=tokens)
        assert kept.outcome is Outcome.OUT_OF_TOKENS
        assert kept.transcript.spans[:3] == whole.transcript.spans[:3]
        assert kept.messages[2]["role"] == "tool"
    # What nothing sampled follows is not trained, and neither are its images.
    assert len(row_of(play(family, OPEN, episode_tokens=exactly)).images) == 1


def test_a_turn_that_is_cut_keeps_the_images_before_it() -> None:
    whole = play("qwen3_vl", OPEN)
    before = sum(len(span.ids) for span in whole.transcript.spans[1:3])
    cut = play("qwen3_vl", OPEN, episode_tokens=before + 1)
    assert cut.outcome is Outcome.OUT_OF_TOKENS
    assert cut.transcript.spans[3].ids == whole.transcript.spans[3].ids[:1]
    assert len(row_of(cut).images) == 4


def test_a_truncated_call_opens_no_page() -> None:
    whole = play("qwen3_vl", OPEN)
    cut = play("qwen3_vl", OPEN, episode_tokens=len(whole.transcript.spans[1].ids) - 1)
    assert cut.outcome is Outcome.OUT_OF_TOKENS
    assert cut.tools.calls == 0


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("image", "'broken' is no readable image"),
        ("video", "of type 'video' cannot be shown to a model"),
        ("audio", "of type 'audio' cannot be shown to a model"),
    ],
)
def test_what_cannot_be_shown_is_a_fault_of_its_episode(what: str, why: str) -> None:
    # The only episode there is: where others are, they go on.
    with pytest.raises(EnvironmentFault, match=why):
        play("qwen3_vl", ToolCall(name="look", arguments={"what": what}))
