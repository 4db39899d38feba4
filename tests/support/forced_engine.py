"""The built-in engine, with some of the tokens it draws given beforehand.

A random model calls no tools. Here a turn begins with tokens that are really sampled and goes on
with tokens that a test wants; the logprobs of both come from the engine's own passes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from torch import Tensor

from corral.engines.torch_engine import TorchEngine, scheduler
from corral.engines.torch_engine.sampler import RowSampling, sample_rows
from corral.engines.torch_engine.scheduler import Scheduler
from corral.records import PlacedImage, Sampled, SamplingParams


@dataclass(frozen=True, kw_only=True)
class ForcedTurn:
    """What one turn consists of."""

    ids: tuple[int, ...]
    """Given tokens, usually with a stop token at the end."""
    free: int = 0
    """How many tokens are really sampled before them."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call to ``sample`` and its answer."""

    conversation: str
    prompt_ids: tuple[int, ...]
    sampled: Sampled
    images: tuple[PlacedImage, ...] = ()


class ForcedEngine(TorchEngine):
    """Asks ``script(conversation, turn)`` for each turn; None leaves the turn to the model.

    ``conversation`` is ``task/member``; ``calls`` has what was consumed and produced, in order of
    completion.
    """

    def __init__(
        self, model: Any, script: Callable[[str, int], ForcedTurn | None], **options: Any
    ) -> None:
        super().__init__(model, **options)
        self.calls: list[Call] = []
        self._script = script
        self._turns: Counter[str] = Counter()
        self._scheduler.__class__ = _ForcedScheduler
        self._forced: dict[str, ForcedTurn | None] = {}
        self._scheduler.forced = self._forced  # type: ignore[attr-defined]

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, key: str
    ) -> Sampled:
        self._force_turn(key)
        sampled = await super().sample(prompt_ids, params, key=key)
        return self._noted(prompt_ids, key, sampled)

    async def sample_with_images(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        key: str,
        images: Sequence[PlacedImage],
    ) -> Sampled:
        self._force_turn(key)
        sampled = await super().sample_with_images(prompt_ids, params, key=key, images=images)
        return self._noted(prompt_ids, key, sampled, images)

    def _force_turn(self, key: str) -> None:
        self._forced[key] = self._script(key.partition("#")[0], self._turns[key])
        self._turns[key] += 1

    def _noted(
        self,
        prompt_ids: Sequence[int],
        key: str,
        sampled: Sampled,
        images: Sequence[PlacedImage] = (),
    ) -> Sampled:
        self.calls.append(
            Call(
                conversation=key.partition("#")[0],
                prompt_ids=tuple(prompt_ids),
                sampled=sampled,
                images=tuple(images),
            )
        )
        return sampled


class _ForcedScheduler(Scheduler):
    forced: dict[str, ForcedTurn | None]

    def _sample(self, slots: np.ndarray, logits: Tensor) -> Any:
        rows = self.memory.rows
        given: dict[int, int] = {}
        for place, slot in enumerate(slots):
            request = rows.requests[slot]
            turn = self.forced[request.key] if request is not None else None
            if turn is None:
                continue
            draw = int(rows.length[slot] - rows.prompt_length[slot]) - turn.free
            if 0 <= draw < len(turn.ids):
                given[place] = turn.ids[draw]
        with patch.object(scheduler, "sample_rows", partial(_with_given, given)):
            return super()._sample(slots, logits)


def _with_given(
    given: dict[int, int],
    logits: Tensor,
    rows: RowSampling,
    uniforms: np.ndarray,
    history: list[Tensor] | None,
) -> tuple[Tensor, Tensor]:
    tokens, logprobs = sample_rows(logits, rows, uniforms, history)
    for place, token in given.items():
        scores = logits[place].float() / (float(rows.temperature[place]) or 1.0)
        tokens[place], logprobs[place] = token, scores.log_softmax(-1)[token]
    return tokens, logprobs
