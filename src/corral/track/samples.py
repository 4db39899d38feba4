"""Prepares sample episodes for a page: messages in order, and each token with what is known of it.

Everything here came from a model or an environment. It stays plain text; the template escapes it.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corral.records import Episode, Message, Span, SpanKind
from corral.track.episodes import SavedEpisode
from corral.track.jsonable import to_jsonable

logger = logging.getLogger(__name__)

Decode = Callable[[Sequence[int]], Sequence[str]]
"""Token ids to one text for each of them."""

MAX_TOKENS = 4000
"""Tokens shown of one episode: a browser slows down beyond."""
MAX_CHARACTERS = 20_000
"""Characters shown of one message."""

_SURE, _LIKELY, _POSSIBLE = 0.9, 0.5, 0.1
"""Probabilities that divide sampled tokens into four shades."""

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a page must not obey: control codes, marks that reverse text, half pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCell:
    """One token of the strip."""

    text: str
    kind: str
    """CSS classes: the kind of the span, and for sampled tokens a shade."""
    title: str
    """Shown on hover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCell:
    """One message, ready to show."""

    role: str
    name: str
    reasoning: str
    content: str
    calls: tuple[str, ...]
    is_prompt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One episode, ready to show."""

    label: str
    step: int
    task_index: int
    member: int
    outcome: str
    error: str
    facts: tuple[tuple[str, str], ...]
    """Name and text: rewards, advantage, turns, tokens, time."""
    messages: tuple[MessageCell, ...]
    tokens: tuple[TokenCell, ...]
    hidden_tokens: int


def choose(episodes: Sequence[SavedEpisode], count: int) -> list[tuple[str, SavedEpisode]]:
    """Up to ``count`` episodes spread over the range of rewards, the best first, with a label."""
    scored = [one for one in episodes if one.episode.reward is not None]
    scored.sort(key=lambda one: -(one.episode.reward or 0.0))
    if not scored:
        return [("not scored", one) for one in episodes[:count]]
    last = len(scored) - 1
    places = [0] if count == 1 else [round(last * i / (count - 1)) for i in range(count)]
    chosen = list(dict.fromkeys(places))
    return [(_label(place, last), scored[place]) for place in chosen]


def prepare(label: str, step: int, saved: SavedEpisode, decode: Decode | None) -> Sample:
    """One episode as text for the page."""
    episode = saved.episode
    cells = list(token_cells(episode.transcript.spans, decode))
    return Sample(
        label=label,
        step=step,
        task_index=episode.task.index,
        member=episode.member,
        outcome=episode.outcome.value,
        error=visible(episode.error or ""),
        facts=tuple(_facts(saved)),
        messages=tuple(_message(message, index, episode)
                       for index, message in enumerate(episode.messages)),
        tokens=tuple(cells[:MAX_TOKENS]),
        hidden_tokens=max(0, len(cells) - MAX_TOKENS),
    )  # fmt: skip


def token_cells(spans: Sequence[Span], decode: Decode | None) -> Iterator[TokenCell]:
    """Every token in the order it entered; a branch is announced by a cell of its own."""
    for index, span in enumerate(spans):
        if span.parent != index - 1:
            where = "the start" if span.parent < 0 else f"part {span.parent + 1}"
            yield TokenCell(text=f"↳ branch after {where}", kind="branch", title="")
        texts = token_texts(span.ids, decode)
        for position, (token, text) in enumerate(zip(span.ids, texts, strict=True)):
            logprob = span.logprobs[position] if span.logprobs is not None else None
            yield TokenCell(
                text=visible(text).replace("\n", "↵\n"),
                kind=_classes(span.kind, logprob),
                title=_title(span, token, logprob),
            )


def token_texts(ids: Sequence[int], decode: Decode | None) -> list[str]:
    """The text of each token; the ids themselves where ``decode`` is missing or fails."""
    if decode is not None:
        try:
            texts = [str(text) for text in decode(ids)]
        except Exception as error:  # noqa: BLE001 - a report must not depend on foreign code
            logger.warning("The tokens are shown as ids, because decode failed: %s", error)
        else:
            if len(texts) == len(ids):
                return texts
            logger.warning("decode gave %d texts for %d ids; shown as ids", len(texts), len(ids))
    return [f"{token} " for token in ids]


def visible(text: str) -> str:
    """The text with characters that would act on the page replaced by their names."""
    return _CONTROL.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def number(value: Any) -> str:
    """A number for reading; unknown is a dash, never 0."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return visible(str(value))
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _label(place: int, last: int) -> str:
    if place == 0:
        return "highest reward"
    if place == last:
        return "lowest reward"
    return "median reward" if abs(place * 2 - last) <= 1 else f"rank {place + 1} of {last + 1}"


def _facts(saved: SavedEpisode) -> Iterator[tuple[str, str]]:
    episode = saved.episode
    yield "reward", number(episode.reward)
    if len(episode.rewards) > 1:
        yield from ((name, number(value)) for name, value in episode.rewards.items())
    yield "advantage", number(saved.advantage)
    yield "turns", number(episode.turns)
    tools = episode.tools
    yield "tool calls", f"{tools.calls} ({tools.failures} failed, {tools.malformed} malformed)"
    yield "tokens sampled", number(episode.transcript.sampled_count())
    versions = sorted({span.version for span in episode.transcript.spans} - {None}, key=str)
    if versions:
        yield "weight version", ", ".join(str(one) for one in versions)
    yield from ((name, number(value)) for name, value in episode.metrics.items())
    yield from ((f"{name} time", f"{value:.2f} s") for name, value in episode.seconds.items())


def _message(message: Message, index: int, episode: Episode) -> MessageCell:
    return MessageCell(
        role=str(message.get("role", "?")),
        name=visible(str(message.get("name", ""))),
        reasoning=_cut(visible(str(message.get("reasoning_content") or ""))),
        content=_cut(visible(content_text(message.get("content")))),
        calls=tuple(_cut(visible(_call(call))) for call in message.get("tool_calls") or ()),
        is_prompt=index < episode.completion_start,
    )


def content_text(content: Any) -> str:
    """The text of a message's content, whatever its form."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return str(content)
    parts: list[str] = []
    for part in content:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif isinstance(part, dict):
            parts.append(f"[{part.get('type', 'part')}]")
        else:
            parts.append(str(part))
    return "\n".join(parts)


def _call(call: Any) -> str:
    function = call.get("function", call) if isinstance(call, dict) else {}
    arguments = function.get("arguments", {})
    if not isinstance(arguments, dict):
        return f"{function.get('name', '?')}({arguments})"
    inner = ", ".join(
        f"{name}={json.dumps(to_jsonable(value), ensure_ascii=False)}"
        for name, value in arguments.items()
    )
    return f"{function.get('name', '?')}({inner})"


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS:,} more characters)"


def _classes(kind: SpanKind, logprob: float | None) -> str:
    if logprob is None or math.isnan(logprob):
        return kind.value
    probability = math.exp(min(0.0, logprob))
    shade = sum(probability < bound for bound in (_SURE, _LIKELY, _POSSIBLE))
    return f"{kind.value} shade{shade}"


def _title(span: Span, token: int, logprob: float | None) -> str:
    parts = [f"{span.kind.value} · id {token}"]
    if logprob is not None:
        parts.append(f"logprob {logprob:.4f} · p {math.exp(min(0.0, logprob)):.1%}")
    if span.version is not None:
        parts.append(f"weights v{span.version}")
    return " · ".join(parts)
