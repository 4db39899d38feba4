"""Micro-batches: which rows go together, and the tensors a model needs for them.

Rows are cut by a budget of token positions, never by a count of rows, so memory is bounded whatever
the lengths are. With ``packing`` rows lie one after another in one long line, each attending only
to itself; without, they lie under each other, padded at the end. Both give the same flat tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch
from corral.errors import UsageError
from corral.records import Sample
from corral.vision import ImageBatch, image_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """The tensors of some rows: what the model reads, and which predictions are trained.

    N trained tokens, in row order; B rows. ``input_ids`` and ``position_ids`` are [lines, length]:
    one line when packed, B lines when padded.
    """

    indices: tuple[int, ...]
    """Which samples these are, in row order."""
    input_ids: Tensor
    position_ids: Tensor
    """Positions of each row start at 0; in a packed line that is also where rows are told apart."""
    attention_mask: Tensor | None
    """[lines, length], 0 at padding. None when packed: attention is causal within each row."""
    source: Tensor
    """[N] flat index into [lines × length] of the position that predicts each trained token."""
    targets: Tensor
    """[N] the trained tokens."""
    row: Tensor
    """[N] the row of each trained token, 0 to B-1."""
    advantages: Tensor
    """[B]."""
    sampling_logprobs: Tensor
    """[N] as the engine reported them."""
    episode_share: Tensor
    """[B] the row's part of its episode's trained tokens."""
    images: ImageBatch | None = None
    """The images of all rows; None if there are none. Never with ``packing``."""

    def to(self, device: torch.device | str) -> "MicroBatch":
        """The same micro-batch on another device."""
        moved = {
            name: value.to(device)
            for name in self.__slots__
            if isinstance(value := getattr(self, name), Tensor | ImageBatch)
        }
        return replace(self, **moved)

    def token_batch(
        self,
        logprobs: Tensor,
        *,
        old_logprobs: Tensor | None = None,
        ref_logprobs: Tensor | None = None,
        entropies: Tensor | None = None,
    ) -> TokenBatch:
        """What a loss looks at, given the model's view of the trained tokens."""
        return TokenBatch(
            logprobs=logprobs,
            mask=torch.ones_like(self.row, dtype=torch.bool),
            row=self.row,
            advantages=self.advantages.to(logprobs.dtype),
            old_logprobs=old_logprobs,
            sampling_logprobs=self.sampling_logprobs.to(logprobs.dtype),
            ref_logprobs=ref_logprobs,
            entropies=entropies,
            episode_share=self.episode_share.to(logprobs.dtype),
            row_count=len(self.indices),
        )


def cut(lengths: Sequence[int], token_budget: int, *, packing: bool) -> list[list[int]]:
    """Indices of the rows of each micro-batch; every row is in exactly one.

    A micro-batch costs its number of positions: the sum of its lengths when packed, rows times the
    longest when padded. Rows are taken longest first, so that one that does not fit in memory shows
    itself at once, and ties go by index, so that the cut is the same every time. A row longer than
    the budget is alone in its micro-batch.
    """
    if token_budget < 1:
        raise UsageError(f"The token budget is {token_budget}: choose 1 or more tokens.")
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    if packing:
        return _first_fit(order, lengths, token_budget)
    return _rectangles(order, lengths, token_budget)


def _first_fit(order: list[int], lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    batches: list[list[int]] = []
    free: list[int] = []
    for index in order:
        place = next((i for i, room in enumerate(free) if lengths[index] <= room), None)
        if place is None:
            batches.append([index])
            free.append(token_budget - lengths[index])
        else:
            batches[place].append(index)
            free[place] -= lengths[index]
    return batches


def _rectangles(order: list[int], lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for index in order:
        last = batches[-1] if batches else None
        if last is not None and (len(last) + 1) * lengths[last[0]] <= token_budget:
            last.append(index)
        else:
            batches.append([index])
    return batches


def collate(
    samples: Sequence[Sample],
    indices: Sequence[int],
    *,
    packing: bool,
    pad_id: int = 0,
    episode_shares: Sequence[float] | None = None,
) -> MicroBatch:
    """The tensors of the samples at ``indices``.

    The token at place t of a row is predicted at place t-1, so a row's first token cannot be
    trained. A row without trained tokens is allowed.

    Args:
        pad_id: Fills padding; its value has no influence.
        episode_shares: One for each of ``samples``, from ``batch.episode_shares`` over the whole
            step; 1 for each by default.
    """
    rows = [samples[index] for index in indices]
    if not rows:
        raise UsageError("A micro-batch needs at least one sample.")
    for index, sample in zip(indices, rows, strict=True):
        _check(index, sample)
    lengths = [len(sample.ids) for sample in rows]
    if packing and any(sample.images for sample in rows):
        raise UsageError(
            "packing=True lays rows behind each other, where the positions of images would be "
            "wrong. Set packing=False."
        )
    width = sum(lengths) if packing else max(lengths)
    starts = _starts(lengths) if packing else [line * width for line in range(len(rows))]
    trained = [
        (start + place - 1, sample.ids[place], sample.logprobs[place], row)
        for row, (start, sample) in enumerate(zip(starts, rows, strict=True))
        for place, is_trained in enumerate(sample.loss_mask)
        if is_trained
    ]
    shares = [1.0 if episode_shares is None else episode_shares[index] for index in indices]
    return MicroBatch(
        indices=tuple(indices),
        input_ids=_lines([sample.ids for sample in rows], width, packing=packing, fill=pad_id),
        position_ids=_lines([range(n) for n in lengths], width, packing=packing, fill=0),
        attention_mask=None
        if packing
        else _lines([[1] * n for n in lengths], width, packing=False, fill=0),
        source=torch.tensor([entry[0] for entry in trained], dtype=torch.int64),
        targets=torch.tensor([entry[1] for entry in trained], dtype=torch.int64),
        sampling_logprobs=torch.tensor([entry[2] for entry in trained], dtype=torch.float32),
        row=torch.tensor([entry[3] for entry in trained], dtype=torch.int64),
        advantages=torch.tensor([sample.advantage for sample in rows], dtype=torch.float32),
        episode_share=torch.tensor(shares, dtype=torch.float32),
        images=image_batch([(sample.ids, sample.images) for sample in rows], width),
    )


def _lines(rows: Sequence[Sequence[int]], width: int, *, packing: bool, fill: int) -> Tensor:
    if packing:
        return torch.tensor([[token for row in rows for token in row]], dtype=torch.int64)
    padded = [[*row, *[fill] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.int64)


def _starts(lengths: Sequence[int]) -> list[int]:
    starts = [0]
    for length in lengths[:-1]:
        starts.append(starts[-1] + length)
    return starts


def _check(index: int, sample: Sample) -> None:
    if not len(sample.ids) == len(sample.loss_mask) == len(sample.logprobs):
        raise ValueError(
            f"Sample {index} has {len(sample.ids)} ids, {len(sample.loss_mask)} mask entries and "
            f"{len(sample.logprobs)} logprobs: they must be as many."
        )
    if not sample.ids or sample.loss_mask[0]:
        raise UsageError(
            f"Sample {index} trains its first token, which nothing predicts, or has no token: a "
            "row begins with at least one prompt token (the BOS token will do)."
        )
