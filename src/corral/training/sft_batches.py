"""Which rows an optimiser step of supervised fine-tuning learns from: a function of its number."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

from corral.errors import UsageError
from corral.records import Sample
from corral.rollout.seeds import shuffled
from corral.training.blocks import Block, pack_blocks
from corral.training.data_files import Row, RowStream
from corral.training.picture_table import PictureTable, reordered
from corral.training.row_tally import RowTally
from corral.training.sft_config import SFTConfig
from corral.training.sft_images import check_images
from corral.training.token_rows import RowEncoder, TokenRow

logger = logging.getLogger(__name__)


class ListedBatches:
    """Blocks of rows that are all known: shuffled anew each epoch."""

    def __init__(self, blocks: Sequence[Block], per_step: int, args: SFTConfig) -> None:
        self.blocks = blocks
        self.per_step = per_step
        self._seed = args.seed if args.data_seed is None else args.data_seed
        self._is_random = args.train_sampling_strategy == "random"

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one pass; the last may have fewer rows."""
        return -(-len(self.blocks) // self.per_step)

    def step(self, number: int, share: slice = slice(None)) -> list[Block]:
        """The blocks of step ``number`` (from 0), over all processes, or a share of them."""
        epoch, place = divmod(number, self.steps_per_epoch)
        order: Sequence[int] = range(len(self.blocks))
        if self._is_random:
            order = shuffled(order, self._seed, "epoch", epoch)
        picked = order[place * self.per_step : (place + 1) * self.per_step]
        return [self.blocks[index] for index in picked[share]]


class StreamedBatches:
    """Blocks of rows that are read as they come, again from the start when they end."""

    steps_per_epoch = None

    def __init__(self, source: Iterable[Block], per_step: int) -> None:
        self._source = source
        self._per_step = per_step
        self._next = 0
        self._blocks = self._endless()

    def step(self, number: int, share: slice = slice(None)) -> list[Block]:
        """As above; an earlier step than the last starts the stream again."""
        if number < self._next:
            self._next, self._blocks = 0, self._endless()
        skipped = (number - self._next) * self._per_step
        self._next = number + 1
        return list(islice(self._blocks, skipped, skipped + self._per_step))[share]

    def _endless(self) -> Iterator[Block]:
        while True:
            is_empty = True
            for block in self._source:
                is_empty = False
                yield block
            if is_empty:
                raise UsageError("train_dataset has no row to learn from.")


@dataclass(frozen=True, slots=True)
class BlocksOnDemand(Sequence[Block]):
    """One block for each row, encoded whenever it is asked for: pixels of all would fill memory."""

    rows: Sequence[Row]
    encoder: RowEncoder
    args: SFTConfig
    tally: RowTally

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        row = self.encoder.encode(self.rows[index], index)
        cut = cut_row(row, self.args)
        self.tally.saw(index, row, cut)
        return (cut,)


class BlockSource:
    """The blocks of some rows, made anew each time they are asked for."""

    def __init__(
        self,
        rows: Iterable[Row],
        encoder: RowEncoder,
        args: SFTConfig,
        *,
        packing: bool,
        name: str,
        tally: RowTally,
    ) -> None:
        self._rows = rows
        self._encoder = encoder
        self._args = args
        self._packing = packing
        self._name = name
        self._tally = tally

    def __iter__(self) -> Iterator[Block]:
        if self._packing:
            assert self._args.max_length is not None
            strategy = self._args.packing_strategy
            yield from pack_blocks(self._whole(), self._args.max_length, strategy)
        else:
            yield from ((row,) for row in self._cut())

    def _whole(self) -> Iterator[TokenRow]:
        """Rows to pack; of one that is too long, most strategies make several."""
        is_cut = self._args.packing_strategy == "bfd"
        for index, given in enumerate(self._rows):
            row = self._encoder.encode(given, index)
            self._tally.saw(index, row, row.cut(slice(self._args.max_length)) if is_cut else row)
            yield row

    def _cut(self) -> Iterator[TokenRow]:
        """Rows cut to the longest length, without those that have nothing left to learn."""
        dropped, longest = 0, 0
        for index, given in enumerate(self._rows):
            row = self._encoder.encode(given, index)
            cut = cut_row(row, self._args)
            self._tally.saw(index, row, cut)
            if cut.trained_tokens():
                yield cut
            else:
                dropped, longest = dropped + 1, max(longest, len(row.ids))
        if dropped:
            logger.warning(
                "%s: %d rows have no token to learn within max_length=%s and are left out (the "
                "longest has %d tokens).",
                *(self._name, dropped, self._args.max_length, longest),
            )


def cut_row(row: TokenRow, args: SFTConfig) -> TokenRow:
    """The row, cut to ``max_length`` at the end that ``truncation_mode`` gives up."""
    if args.max_length is None or len(row.ids) <= args.max_length:
        return row
    if args.truncation_mode == "keep_start":
        return row.first(args.max_length)
    return row.cut(slice(-args.max_length, None))


def batches_of(
    rows: Sequence[Row] | RowStream,
    encoder: RowEncoder,
    args: SFTConfig,
    *,
    per_step: int,
    tally: RowTally,
) -> ListedBatches | StreamedBatches:
    """The batches of the training data.

    Args:
        tally: Is told of every row.

    Raises:
        UsageError: There is nothing to learn from, or a stream that is to be shuffled.
    """
    name = "train_dataset"
    if isinstance(rows, RowStream):
        if args.shuffle_dataset:
            raise UsageError(
                "shuffle_dataset=True with a stream, which cannot be shuffled as a whole: shuffle "
                "it with a buffer of its own, as dataset.shuffle(buffer_size=...) does."
            )
        packing = args.packing
        source = BlockSource(rows, encoder, args, packing=packing, name=name, tally=tally)
        return StreamedBatches(source, per_step)
    if args.shuffle_dataset:
        seed = args.seed if args.data_seed is None else args.data_seed
        rows = reordered(rows, shuffled(range(len(rows)), seed, "dataset"))
    blocks = blocks_of(rows, encoder, args, packing=args.packing, name=name, tally=tally)
    return ListedBatches(blocks, per_step, args)


def blocks_of(
    rows: Sequence[Row] | RowStream,
    encoder: RowEncoder,
    args: SFTConfig,
    *,
    packing: bool,
    name: str,
    tally: RowTally | None = None,
) -> Sequence[Block]:
    """All blocks of some rows; where there are images, each is made when it is needed.

    Raises:
        UsageError: There are no rows, or none with a token to learn.
    """
    tally = RowTally() if tally is None else tally
    listed = list(rows) if isinstance(rows, RowStream) else rows
    if not listed:
        raise UsageError(f"{name} has no rows: give at least one.")
    if isinstance(listed, PictureTable):
        check_images(encoder.images, args, what=name)
        return BlocksOnDemand(listed, encoder, args, tally)
    if any(shape.has_images for shape in encoder.shapes(listed, name)):
        return BlocksOnDemand(listed, encoder, args, tally)
    source = BlockSource(listed, encoder, args, packing=packing, name=name, tally=tally)
    blocks = list(source)
    if not any(row.trained_tokens() for block in blocks for row in block):
        raise UsageError(
            f"{name}: none of {len(listed)} rows has a token to learn in its first "
            f"{args.max_length} tokens: raise max_length."
        )
    return blocks


def sample_of(row: TokenRow, index: int) -> Sample:
    """A row as the learner takes it: nothing predicts its first token."""
    return Sample(
        ids=row.ids,
        loss_mask=(0, *row.is_trained[1:]),
        logprobs=(0.0,) * len(row.ids),
        advantage=1.0,
        version=0,
        episode=(index, 0),
        images=row.images,
    )
