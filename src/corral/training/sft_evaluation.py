"""The loss on rows that are not trained."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from corral.training.blocks import Block
from corral.training.data_files import open_rows
from corral.training.expert_balance import AUX_LOSS, ExpertBalance
from corral.training.learner import Learner
from corral.training.sft_batches import blocks_of, sample_of
from corral.training.sft_config import SFTConfig
from corral.training.sft_loss import TextLoss, TextNumbers, mean_numbers
from corral.training.token_rows import RowEncoder

_PART = 64
"""Blocks of a process that are in memory together: the pixels of a whole data set may not fit."""


def evaluation_sets(
    dataset: Any, encoder: RowEncoder, args: SFTConfig
) -> dict[str, Sequence[Block]]:
    """The rows to evaluate on by prefix: ``eval``, or ``eval_<name>`` for each of several sets."""
    if dataset is None:
        return {}
    sets = dataset if isinstance(dataset, Mapping) else {"": dataset}
    packing = args.packing if args.eval_packing is None else args.eval_packing
    found: dict[str, Sequence[Block]] = {}
    for key, one in sets.items():
        name = f"eval_dataset[{key!r}]" if key else "eval_dataset"
        blocks = blocks_of(open_rows(one, name=name), encoder, args, packing=packing, name=name)
        found[f"eval_{key}" if key else "eval"] = blocks
    return found


def evaluate(
    learner: Learner,
    sets: Mapping[str, Sequence[Block]],
    args: SFTConfig,
    balance: ExpertBalance | None,
) -> dict[str, float]:
    """Loss, entropy and accuracy on every set: means over tokens, however they are batched."""
    metrics: dict[str, float] = {}
    for prefix, blocks in sets.items():
        started = time.perf_counter()
        numbers = _measured(learner, blocks, args.loss_type, balance)
        seconds = time.perf_counter() - started
        metrics |= {
            f"{prefix}_loss": numbers.loss,
            f"{prefix}_entropy": numbers.entropy,
            f"{prefix}_mean_token_accuracy": numbers.mean_token_accuracy,
            f"{prefix}_runtime": seconds,
            f"{prefix}_samples_per_second": len(blocks) / seconds,
        }
        if balance is not None:
            metrics[f"{prefix}_{AUX_LOSS}"] = numbers.aux_loss
    return metrics


@torch.no_grad()
def _measured(
    learner: Learner, blocks: Sequence[Block], loss_type: str, balance: ExpertBalance | None
) -> TextNumbers:
    """What the blocks of all processes come to, some at a time."""
    processes, own = learner.accelerator.num_processes, learner.accelerator.process_index
    parts: list[TextNumbers] = []
    learner.model.eval()
    for start in range(0, len(blocks), _PART * processes):
        mine = blocks[start + own : start + _PART * processes : processes]
        samples = [sample_of(row, place) for place, block in enumerate(mine) for row in block]
        measured = TextLoss(learner, samples, loss_type, balance)
        for micro in measured.batches:
            measured(micro)
        parts.append(measured.numbers())
    return mean_numbers(parts)
