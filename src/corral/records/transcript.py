"""The transcript: an append-only record of a conversation as tokens.

Only ids that an engine consumed or produced enter it, and nothing is ever rebuilt from text. Spans
form a tree whose usual shape is a line: a rewritten history appends with an earlier ``parent`` and
thereby starts a branch. ``rows`` turns the tree into training rows in which every sampled token is
trained exactly once, however many branches share it.

Lifecycle of a two-turn conversation::

    t = Transcript().append(SpanKind.PROMPT, prompt_ids)
    t = t.append_sampled(sampled)                    # the model's first turn
    t = t.append(SpanKind.TOOL, suffix_ids)          # tool results, and what opens the next turn
    t = t.append_sampled(sampled_again)
    (row,) = t.rows()
    row.ids, row.loss_mask, row.logprobs             # equal lengths, the mask is 1 on sampled ids
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.records.images import PlacedImage
from corral.records.sampling import Sampled


class SpanKind(StrEnum):
    """Where the tokens of a span come from."""

    PROMPT = "prompt"
    """The rendered conversation before the model's first turn."""
    SAMPLED = "sampled"
    """Drawn by the engine: the only tokens that are trained."""
    TOOL = "tool"
    """Tool results with the template around them, up to where the model speaks again."""
    TEMPLATE = "template"
    """Text the template alone added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of tokens of one kind."""

    kind: SpanKind
    ids: tuple[int, ...]
    parent: int
    """Index of the span this one follows; -1 at the root."""
    logprobs: tuple[float, ...] | None = None
    """One for each id of a sampled span, None for all others."""
    version: int | None = None
    """Version of the weights that drew a sampled span."""
    images: tuple[PlacedImage, ...] = ()
    """Images among ``ids``, in order; never in a sampled span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """One training row; all tuples but ``images`` have one entry a token."""

    ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    """1 where the token was sampled and is trained in this row."""
    logprobs: tuple[float, ...]
    """Sampling logprob of trained tokens, 0.0 elsewhere."""
    versions: tuple[int, ...]
    """Weight version of trained tokens, -1 elsewhere."""
    prompt_length: int
    """How many leading tokens precede the first sampled one."""
    images: tuple[PlacedImage, ...] = ()
    """Images among ``ids``, in order."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """An immutable tree of spans; see the module's text for its life."""

    spans: tuple[Span, ...] = ()

    def append(
        self,
        kind: SpanKind,
        ids: Sequence[int],
        *,
        parent: int | None = None,
        images: Sequence[PlacedImage] = (),
    ) -> "Transcript":
        """A transcript with one more unsampled span after ``parent`` (the last span by default)."""
        if kind is SpanKind.SAMPLED:
            raise ValueError("Use append_sampled: a sampled span needs logprobs and a version.")
        parent = self._parent(parent)
        return self._with(Span(kind=kind, ids=tuple(ids), parent=parent, images=tuple(images)))

    def append_sampled(self, sampled: Sampled, *, parent: int | None = None) -> "Transcript":
        """A transcript with one more sampled span after ``parent`` (the last span by default)."""
        span = Span(
            kind=SpanKind.SAMPLED,
            ids=sampled.ids,
            parent=self._parent(parent),
            logprobs=sampled.logprobs,
            version=sampled.version,
        )
        return self._with(span)

    def ids(self, leaf: int = -1) -> tuple[int, ...]:
        """All ids from the root to span ``leaf`` (the last one by default)."""
        return tuple(token for span in self._line(leaf) for token in span.ids)

    def sampled_count(self) -> int:
        """How many ids of the whole tree the model sampled."""
        return sum(len(span.ids) for span in self.spans if span.kind is SpanKind.SAMPLED)

    def leaves(self) -> tuple[int, ...]:
        """Indices of the spans that nothing follows, in order of appending."""
        parents = {span.parent for span in self.spans}
        return tuple(index for index in range(len(self.spans)) if index not in parents)

    def rows(self) -> tuple[TokenRow, ...]:
        """One row a leaf; a span shared by several leaves is trained in the first row only."""
        trained: set[int] = set()
        rows: list[TokenRow] = []
        for leaf in self.leaves():
            line = self._line_indices(leaf)
            rows.append(self._row(line, fresh=set(line) - trained))
            trained.update(line)
        return tuple(rows)

    def _row(self, line: list[int], *, fresh: set[int]) -> TokenRow:
        ids: list[int] = []
        mask: list[int] = []
        logprobs: list[float] = []
        versions: list[int] = []
        images: list[PlacedImage] = []
        prompt_length: int | None = None
        for index in line:
            span = self.spans[index]
            is_sampled = span.kind is SpanKind.SAMPLED
            if is_sampled and prompt_length is None:
                prompt_length = len(ids)
            is_trained = is_sampled and index in fresh
            count = len(span.ids)
            images += [image.moved(len(ids)) for image in span.images]
            ids += span.ids
            mask += [int(is_trained)] * count
            logprobs += span.logprobs if is_trained and span.logprobs else [0.0] * count
            versions += [span.version if is_trained and span.version is not None else -1] * count
        return TokenRow(
            ids=tuple(ids),
            loss_mask=tuple(mask),
            logprobs=tuple(logprobs),
            versions=tuple(versions),
            prompt_length=len(ids) if prompt_length is None else prompt_length,
            images=tuple(images),
        )

    def _parent(self, parent: int | None) -> int:
        last = len(self.spans) - 1
        if parent is None:
            return last
        if not -1 <= parent <= last:
            raise ValueError(f"parent={parent}: the transcript has spans 0 to {last} (-1: root).")
        return parent

    def _with(self, span: Span) -> "Transcript":
        return Transcript((*self.spans, span))

    def _line_indices(self, leaf: int) -> list[int]:
        index = leaf if leaf >= 0 else len(self.spans) - 1
        line: list[int] = []
        while index >= 0:
            line.append(index)
            index = self.spans[index].parent
        return line[::-1]

    def _line(self, leaf: int) -> list[Span]:
        return [self.spans[index] for index in self._line_indices(leaf)]
