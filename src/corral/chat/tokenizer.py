"""What chat needs of a tokenizer, and the few questions it asks one."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Protocol

GUARD = "\ufdde"
"""Stands inside text that spells a control token and must not become it; see ``control_tokens``.

A noncharacter of Unicode: text that is exchanged never contains it.
"""

SHOWN_TOKENS = 8
"""How many tokens on each side an explanation of a difference shows."""


class Tokenizer(Protocol):
    """The part of a ``transformers`` tokenizer that turns conversations into ids and back."""

    @property
    def eos_token_id(self) -> int | None: ...

    @property
    def all_special_ids(self) -> Sequence[int]: ...

    @property
    def chat_template(self) -> Any: ...

    def get_added_vocab(self) -> Mapping[str, int]: ...

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> Any: ...

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = ...,
        *,
        clean_up_tokenization_spaces: bool = ...,
    ) -> Any: ...

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Any = ...,
        *,
        chat_template: str | None = ...,
        add_generation_prompt: bool = ...,
        tokenize: bool = ...,
        **kwargs: Any,
    ) -> Any: ...


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of ``text`` as it stands: nothing is added before or after.

    At each ``GUARD`` the text is cut, so that what stands around it never is one token.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text
    first, *others = text.split(GUARD)
    ids = _encoded(tokenizer, first)
    for piece in others:
        ids += _continued(tokenizer, piece)
    return ids


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(token) for token in tokenizer.encode(text, add_special_tokens=False)]


def text_prompt_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of text that a model is to continue: with what the tokenizer begins every text."""
    return [int(token) for token in tokenizer.encode(text, add_special_tokens=True)]


def plain_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of ``ids`` as reward functions read it: without special tokens."""
    return str(
        tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )


def _continued(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of text that does not begin a text, where some tokenizers would add a space."""
    end = tokenizer.eos_token_id
    if end is None:
        return _encoded(tokenizer, text)
    ids = _encoded(tokenizer, decode(tokenizer, [end]) + text)
    return ids[1:] if ids[:1] == [end] else _encoded(tokenizer, text)


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of ``ids``, special tokens included and spaces left alone."""
    return str(
        tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    )


def single_token(tokenizer: Tokenizer, text: str) -> int | None:
    """The id that alone stands for ``text``, or None when it takes several."""
    ids = encode(tokenizer, text)
    return ids[0] if len(ids) == 1 and decode(tokenizer, ids) == text else None


def is_marker(tokenizer: Tokenizer, token: int) -> bool:
    """Whether a token is set apart from ordinary text, so that text never merges with it."""
    return token in tokenizer.all_special_ids or token in tokenizer.get_added_vocab().values()


def first_difference(
    tokenizer: Tokenizer, expected: Sequence[int], found: Sequence[int]
) -> str | None:
    """Where two id sequences part, shown as text token by token; None when they are equal."""
    for index, (left, right) in enumerate(zip_longest(expected, found)):
        if left != right:
            return (
                f"first difference at token {index}: "
                f"expected {_shown(tokenizer, expected, index)}, "
                f"found {_shown(tokenizer, found, index)}"
            )
    return None


def _shown(tokenizer: Tokenizer, ids: Sequence[int], index: int) -> str:
    tokens = [f"{decode(tokenizer, [token])!r}" for token in ids[index : index + SHOWN_TOKENS]]
    return " ".join(tokens) if tokens else "the end"
