"""Where a template lets an assistant turn end, in text and in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from corral.chat.render import Renderer
from corral.chat.tokenizer import decode, encode, is_marker
from corral.errors import TemplateError
from corral.records import Message

PROBE_TEXT = "probe7QX4"
"""Stands in a rendered conversation for what the model wrote; no template contains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """The tokens that end an assistant turn."""

    token: int
    """The one this template writes."""
    text: str
    stop_texts: tuple[str, ...]
    """The texts of all stop tokens."""
    stop_ids: frozenset[int]

    def before(self, text: str, position: int) -> str:
        """The text up to the first stop token after ``position``; all of it without any."""
        found = [start for stop in self.stop_texts if (start := text.find(stop, position)) >= 0]
        return text[: min(found)] if found else text

    def first_after(self, text: str, position: int) -> int | None:
        """Where the first stop token after ``position`` ends."""
        found = [
            (start, start + len(stop))
            for stop in self.stop_texts
            if (start := text.find(stop, position)) >= 0
        ]
        return min(found)[1] if found else None


def find_turn_end(renderer: Renderer, extra_stop_ids: Sequence[int] = ()) -> TurnEnd:
    """Look where the template ends an assistant turn.

    Raises:
        TemplateError: It ends with no single token a model could be stopped at.
    """
    tokenizer = renderer.tokenizer
    question: Message = {"role": "user", "content": "dummy"}
    answer: Message = {"role": "assistant", "content": PROBE_TEXT}
    text = renderer.text([question, answer])
    if PROBE_TEXT not in text:
        raise TemplateError("The chat template leaves out what the assistant says.")
    tail = text[text.rindex(PROBE_TEXT) + len(PROBE_TEXT) :]
    if not tail.strip():  # what opens the next turn ends this one
        text = renderer.text([question, answer, question])
        tail = text[text.rindex(PROBE_TEXT) + len(PROBE_TEXT) :]

    eos = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    candidates = [*eos, *extra_stop_ids]
    first = encode(tokenizer, tail)[:1]
    if first and first[0] not in candidates and is_marker(tokenizer, first[0]):
        candidates.append(first[0])

    texts = {token: decode(tokenizer, [token]) for token in candidates}
    written = [(tail.find(stop), token) for token, stop in texts.items() if stop and stop in tail]
    if not written:
        names = ", ".join(repr(stop) for stop in texts.values()) or "none"
        raise TemplateError(
            f"The chat template ends an assistant turn with {tail!r}, which has none of the stop "
            f"tokens ({names}): set tokenizer.eos_token to the token that ends a turn, or name it "
            "in extra_stop_ids."
        )
    token = min(written)[1]
    return TurnEnd(
        token=token,
        text=texts[token],
        stop_texts=tuple(stop for stop in texts.values() if stop),
        stop_ids=frozenset(candidates),
    )
