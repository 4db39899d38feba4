"""A small table to play at: a toy tokenizer, a real chat format, and a scripted model."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import jinja2.sandbox
import pytest

from corral.chat.format import ChatFormat
from corral.engines.scripted import ScriptedEngine
from corral.env import prepare
from corral.records import Episode, Task
from corral.rollout.limits import Limits
from corral.rollout.player import Player

SPECIAL = ("<|im_start|>", "<|im_end|>")
_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


class LetterTokenizer:
    """One id a character, and one for each special token; the chat template is Corral's own."""

    chat_template = None
    eos_token = SPECIAL[1]
    eos_token_id = 1
    all_special_ids = (0, 1)
    all_special_tokens = SPECIAL

    def get_added_vocab(self) -> dict[str, int]:
        return {text: index for index, text in enumerate(SPECIAL)}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        ids: list[int] = []
        for piece in _SPECIAL.split(text):
            is_special = piece in SPECIAL
            ids += [SPECIAL.index(piece)] if is_special else [ord(c) + len(SPECIAL) for c in piece]
        return ids

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False, **_: Any) -> str:
        texts = [SPECIAL[i] if i < len(SPECIAL) else chr(i - len(SPECIAL)) for i in token_ids]
        return "".join(texts)

    def convert_ids_to_tokens(self, token: int) -> str:
        return self.decode([token])

    def apply_chat_template(
        self, conversation: Any, tools: Any = None, *, chat_template: str | None = None, **kw: Any
    ) -> str:
        kw.pop("tokenize", None)
        return _template(str(chat_template)).render(
            messages=conversation, tools=tools, eos_token=self.eos_token, **kw
        )


@cache
def _template(source: str) -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    return environment.from_string(source)


TOKENIZER = LetterTokenizer()


def ids_of(text: str) -> list[int]:
    return TOKENIZER.encode(text)


def text_of(ids: Sequence[int]) -> str:
    return TOKENIZER.decode(ids)


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>{body}</tool_call>"


def task(index: int = 0, **columns: Any) -> Task:
    return Task(
        index=index,
        prompt=({"role": "user", "content": "Play."},),
        columns={"prompt": "Play.", **columns},
        environment=columns.get("environment"),
        seed=1000 + index,
    )


def roles(episode: Episode) -> list[str]:
    return [message["role"] for message in episode.messages]


class Says:
    """A model that says given things in order, in each conversation; the last one for ever."""

    def __init__(self, *turns: str) -> None:
        self.turns = turns
        self.taken: dict[str, int] = {}

    def __call__(self, key: str, prompt_ids: Sequence[int]) -> list[int]:
        turn = self.taken.get(key, 0)
        self.taken[key] = turn + 1
        return ids_of(self.turns[min(turn, len(self.turns) - 1)] + SPECIAL[1])


class Table:
    """Plays environments with a scripted model."""

    ids_of = staticmethod(ids_of)
    text_of = staticmethod(text_of)
    call = staticmethod(call)
    task = staticmethod(task)
    roles = staticmethod(roles)

    def __init__(self, chat: ChatFormat) -> None:
        self.chat = chat
        self.engine = ScriptedEngine(Says("done"))

    def player(self, *says: str, script: Any = None, factory: Any = None, **options: Any) -> Player:
        """A player with an engine that says ``says``, or follows ``script``."""
        engine_options = {
            name: options.pop(name)
            for name in ("context", "delay_s", "fail_first")
            if name in options
        }
        self.engine = ScriptedEngine(script or Says(*says), **engine_options)
        tools = options.pop("standalone", ())
        if factory is not None:
            options["kinds"] = {None: prepare(factory, standalone=tools)}
        elif "kinds" not in options:
            options["tools"] = tools
        options.setdefault("limits", Limits(episode_tokens=4000))
        return Player(self.engine, self.chat, **options)  # type: ignore[arg-type]

    def shown(self, episode: Episode) -> str:
        """The whole transcript as text."""
        return text_of(episode.transcript.ids())

    def suffix(self, name: str, content: str) -> list[int]:
        """The tokens that carry one tool result."""
        return self.chat.suffix_ids([{"role": "tool", "name": name, "content": content}])

    async def one(self, *says: str, **options: Any) -> Episode:
        """The one episode of one task."""
        (episode,) = await self.episodes(*says, **options)
        return episode

    async def episodes(
        self, *says: str, tasks: int = 1, members: int = 1, **options: Any
    ) -> list[Episode]:
        """The episodes of ``tasks`` groups of ``members``, in order."""
        player = self.player(*says, **options)
        groups = await player.play([self.task(index) for index in range(tasks)], members)
        return [episode for group in groups for episode in group.group.episodes]


@pytest.fixture(scope="session")
def chat() -> ChatFormat:
    return ChatFormat.for_tokenizer(TOKENIZER)  # type: ignore[arg-type]


@pytest.fixture
def table(chat: ChatFormat) -> Table:
    return Table(chat)
