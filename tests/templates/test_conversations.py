"""What is demonstrated is laid out, token for token, as what is played."""

import asyncio
from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.chat.tokenizer import decode
from corral.engines.scripted import ScriptedEngine
from corral.env import prepare
from corral.errors import UsageError
from corral.records import Task
from corral.rollout import Limits, Player
from corral.training.conversations import lay_out
from support.template_zoo import EXTENDABLE
from support.toy_tokenizers import byte_level_tokenizer, merging_tokenizer


class Echo:
    def reset(self, **kwargs: Any) -> None:
        pass

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        return text + "\n\n"


KIND = prepare(Echo)
SCHEMAS = list(KIND.tools.schemas)
QUESTION = {"role": "user", "content": "Talk."}


def call(text: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "say", "arguments": {"text": text}}}


def said(content: str = "", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


TURNS = [
    said(tool_calls=[call("hello")], reasoning_content="hello aaa"),
    said("Again.", tool_calls=[call('"aa"\n')]),
    said("hello"),
]


def play(chat: ChatFormat, turns: list[dict[str, Any]]) -> Any:
    """The turns, said by a model."""
    engine = ScriptedEngine(lambda key, ids: chat.turn_ids(turns[len(engine.calls) - 1]))
    player = Player(engine, chat, kinds={None: prepare(Echo)}, limits=Limits(episode_tokens=5000))
    task = Task(index=0, prompt=(QUESTION,))
    (played,) = asyncio.run(player.play([task], 1))
    return played.group.episodes[0]


@pytest.mark.parametrize("make", [byte_level_tokenizer, merging_tokenizer])
@pytest.mark.parametrize("name", sorted(EXTENDABLE))
def test_a_demonstration_is_laid_out_like_a_game(name: str, make: Any) -> None:
    chat = ChatFormat.for_tokenizer(make(chat_template=EXTENDABLE[name]), tools=SCHEMAS)
    turns = [dict(turn) for turn in TURNS]
    if name == "closes a thought":
        del turns[0]["reasoning_content"]  # there is no place for one
    episode = play(chat, turns)
    (row,) = episode.transcript.rows()
    results = [message for message in episode.messages if message["role"] == "tool"]
    layout = lay_out(
        chat, [QUESTION, turns[0], results[0], turns[1], results[1], turns[2]], SCHEMAS
    )
    played = len(row.ids)
    assert layout.ids[:played] == row.ids
    assert layout.is_said[:played] == row.loss_mask
    # What the template writes behind the last stop token is nothing that a model says.
    assert not decode(chat.renderer.tokenizer, layout.ids[played:]).strip()
    assert not any(layout.is_said[played:])


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE["separator"])
    return ChatFormat.for_tokenizer(tokenizer, tools=SCHEMAS)


def spoken(chat: ChatFormat, layout: Any) -> str:
    pairs = zip(layout.ids, layout.is_said, strict=True)
    return decode(chat.renderer.tokenizer, [token for token, is_said in pairs if is_said])


def test_what_follows_the_last_answer_is_kept_and_not_learned(chat: ChatFormat) -> None:
    talk = [QUESTION, said("Yes.")]
    longer = [*talk, {"role": "user", "content": "More?"}]
    short, long = (lay_out(chat, one, None) for one in (talk, longer))
    assert long.ids[: len(short.ids)] == short.ids
    assert "More?" in decode(chat.renderer.tokenizer, long.ids)
    assert spoken(chat, long) == spoken(chat, short) == "Yes." + chat.turn_end.text
    whole = chat.renderer.ids(longer)
    assert list(long.ids) == whole


def test_assistant_messages_of_the_prompt_are_not_learned(chat: ChatFormat) -> None:
    talk = [QUESTION, said("An example."), QUESTION, said("Yes.")]
    assert spoken(chat, lay_out(chat, talk, None, first=3)) == "Yes." + chat.turn_end.text
    assert "An example." in spoken(chat, lay_out(chat, talk, None))


@pytest.mark.report("P009")
def test_reasoning_that_the_template_drops_from_history_is_learned() -> None:
    template = EXTENDABLE["drops all thoughts from history"]
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=template), tools=SCHEMAS)
    thoughtful = said("One.", reasoning_content="First I think.")
    talk = [QUESTION, thoughtful, QUESTION, said("Two."), QUESTION]
    assert "First I think." not in chat.renderer.text(talk)
    layout = lay_out(chat, talk, None)
    assert "First I think." in spoken(chat, layout)
    assert decode(chat.renderer.tokenizer, layout.ids).count("Talk.") == 3


def test_a_talk_without_an_answer_or_with_two_in_a_row_is_refused(chat: ChatFormat) -> None:
    with pytest.raises(UsageError, match="without an assistant message has nothing to learn"):
        lay_out(chat, [QUESTION], None)
    with pytest.raises(UsageError, match="Messages 1 and 2 are assistant turns with nothing"):
        lay_out(chat, [QUESTION, said("One."), said("Two.")], None)
