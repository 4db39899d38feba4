"""What is demonstrated is laid out, token for token, as what is played."""

import asyncio
from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.engines.scripted import ScriptedEngine
from corral.env import prepare
from corral.errors import UsageError
from corral.records import Task
from corral.rollout import Limits, Player
from corral.training.conversations import conversation_of, encode_conversation
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
    task = Task(index=0, prompt=({"role": "user", "content": "Talk."},))
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
    question = {"role": "user", "content": "Talk."}
    talk = [question, turns[0], results[0], turns[1], results[1], turns[2]]
    encoded = encode_conversation(chat, talk, SCHEMAS, max_length=None)
    assert encoded.ids == row.ids
    assert encoded.loss_mask == row.loss_mask


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE["separator"])
    return ChatFormat.for_tokenizer(tokenizer, tools=SCHEMAS)


def test_what_follows_the_last_answer_is_left_out(chat: ChatFormat) -> None:
    talk = [{"role": "user", "content": "Talk."}, said("Yes.")]
    longer = [*talk, {"role": "user", "content": "More?"}]
    rows = [encode_conversation(chat, one, None, max_length=None) for one in (talk, longer)]
    assert rows[0] == rows[1]
    assert rows[0].loss_mask[-1] == 1


def test_a_long_conversation_is_cut_at_the_end(chat: ChatFormat) -> None:
    talk = [{"role": "user", "content": "Talk."}, said("word " * 30)]
    whole = encode_conversation(chat, talk, None, max_length=None)
    cut = encode_conversation(chat, talk, None, max_length=len(whole.ids) - 50)
    assert cut.ids == whole.ids[:-50]
    assert cut.loss_mask == whole.loss_mask[:-50]
    with pytest.raises(UsageError, match=r"first 5 tokens .* no assistant token: raise max_length"):
        encode_conversation(chat, talk, None, max_length=5)


def test_rows_are_read_from_messages_or_from_prompt_and_completion() -> None:
    talk = [{"role": "user", "content": "Hi."}, said("Hi!")]
    assert conversation_of({"messages": talk}) == (talk, None)
    assert conversation_of({"messages": talk, "tools": SCHEMAS}) == (talk, SCHEMAS)
    assert conversation_of({"prompt": "Hi.", "completion": "Hi!"}) == (talk, None)
    assert conversation_of({"prompt": talk[:1], "completion": talk[1:]}) == (talk, None)
    assert conversation_of({"messages": talk, "tools": []}) == (talk, None)


def test_a_row_or_a_talk_without_an_answer_is_refused(chat: ChatFormat) -> None:
    with pytest.raises(UsageError, match=r"columns \['text'\] can't be learned from"):
        conversation_of({"text": "Hi."})
    with pytest.raises(UsageError, match="without an assistant message has nothing to learn"):
        encode_conversation(chat, [{"role": "user", "content": "Hi."}], None, max_length=None)
