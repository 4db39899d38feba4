"""Small tokenizers, built in memory, that show what real ones do in the corners.

``from support.toy_tokenizers import byte_level_tokenizer, merging_tokenizer``
"""

from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

CHATML_MARKERS = ("<|im_start|>", "<|im_end|>")
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

Merges = Sequence[tuple[str, str]]

AMBIGUOUS_MERGES: Merges = (
    ("h", "e"),
    ("l", "l"),
    ("ll", "o"),
    ("he", "llo"),
    ("\n", "\n"),
    ("{", '"'),
    ('"', "}"),
    (" ", "h"),
    ("a", "a"),
    ("aa", "a"),
)
"""``hello`` is one id, and also ``he`` + ``llo``; newlines merge in pairs."""


def byte_level_tokenizer(
    *,
    chat_template: str | None = None,
    markers: Sequence[str] = CHATML_MARKERS,
    tags: Sequence[str] = (),
    plain_tags: Sequence[str] = (),
    eos: str = "<|im_end|>",
    pad: str | None = None,
    merges: Merges = (),
) -> Any:
    """One id a byte, plus ``merges``; any text is encodable.

    Args:
        markers: Special tokens, besides ``eos``; empty for a tokenizer that knows no ChatML.
        tags: Tags that are one special token each.
        plain_tags: Tags that are one added token each, but not special.
        pad: None pads with ``eos``.
        merges: Pairs of text to merge, in order of priority.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    spelled = [(_spelled(left), _spelled(right)) for left, right in merges]
    for left, right in spelled:
        vocabulary.setdefault(left + right, len(vocabulary))
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=spelled))
    # No regular expression: merges may cross any boundary of words and lines.
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    special = dict.fromkeys([*markers, eos, *([pad] if pad else []), *tags])
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    core.add_tokens([AddedToken(text, special=False, normalized=False) for text in plain_tags])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=eos,
        pad_token=pad or eos,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def sentence_piece_tokenizer(*, chat_template: str, tags: Sequence[str] = ()) -> Any:
    """Letters with ``▁`` for a space, and one more where a text begins, as Llama 2 has it."""
    letters = ["▁", "\n", *map(chr, range(33, 127))]
    vocabulary = {"<unk>": 0, **{letter: index + 1 for index, letter in enumerate(letters)}}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    core.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
    special = [*CHATML_MARKERS, *tags]
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def merging_tokenizer(**options: Any) -> Any:
    """A tokenizer whose ids are not determined by their text; see ``AMBIGUOUS_MERGES``."""
    return byte_level_tokenizer(merges=AMBIGUOUS_MERGES, **options)


def _spelled(text: str) -> str:
    """Text in the letters byte-level models use for bytes."""
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in pieces.pre_tokenize_str(text))
