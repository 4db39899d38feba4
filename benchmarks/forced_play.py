"""The same game and the same turns for both trainers, whatever the model would have said.

An untrained model ends its games after a turn, and two samplers draw different turns anyway. So the
ids of every turn are forced, to the tokens of one guess. Nothing else is: each forced id still
costs its forward pass, its logits over the whole vocabulary and a draw from them; only the id that
comes out is replaced. In TRL a logits processor leaves one id possible, which its sampler then
draws. In Corral, which has no logits processors, the draw is made as always and then replaced, and
the logprob of the forced id is computed on top of that of the drawn one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corral.worlds.guess_number import GuessNumber

FORCED_TURN = '<tool_call>{"name": "guess", "arguments": {"n": 10}}</tool_call><|im_end|>'


class EndlessGuessNumber(GuessNumber):
    """A game that 10 never wins and no number of guesses loses."""

    max_guesses = 10**9

    def reset(self, secret: int = 7, **kwargs: Any) -> str:
        """Start a game.

        Args:
            secret: The number to find.
            kwargs: Other columns of the row; not used.
        """
        return super().reset(secret)


def distinct_rewards(completions: list[Any], **kwargs: Any) -> list[float]:
    """A different reward for each episode: games that all go alike would teach nothing."""
    return [float(number) for number in range(len(completions))]


class ForcedTurn:
    """Forces turns in ``generate`` of transformers: a logits processor, made anew for each call."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids
        self._prompt_length: int | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._prompt_length is None:
            self._prompt_length = input_ids.shape[1]
        forced = self._ids[input_ids.shape[1] - self._prompt_length]
        only = torch.full_like(scores, -torch.inf)
        only[:, forced] = 0.0
        return only


def force_generate(model: Any, ids: list[int]) -> None:
    """Have every turn that ``model.generate`` samples be ``ids``."""
    generate = model.generate

    def forced(*args: Any, **kwargs: Any) -> Any:
        return generate(*args, logits_processor=[ForcedTurn(ids)], **kwargs)

    model.generate = forced


def force_engine(ids: list[int]) -> Callable[[], None]:
    """Have every turn that Corral's PyTorch engine samples be ``ids``; returns what undoes it."""
    from corral.engines.torch_engine import scheduler

    uniforms, sample_rows = scheduler.uniforms, scheduler.sample_rows
    forced = torch.tensor(ids)
    draws_now = np.zeros(0, dtype=np.int64)

    def remember_draws(seeds: np.ndarray, draws: np.ndarray) -> np.ndarray:
        nonlocal draws_now
        draws_now = draws
        return uniforms(seeds, draws)

    def sample_forced(logits: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
        sample_rows(logits, *args)
        tokens = forced[torch.from_numpy(draws_now)].to(logits.device)
        logprobs = logits.float().log_softmax(-1).gather(-1, tokens[:, None])[:, 0]
        return tokens, logprobs

    def undo() -> None:
        scheduler.uniforms, scheduler.sample_rows = uniforms, sample_rows

    scheduler.uniforms, scheduler.sample_rows = remember_draws, sample_forced
    return undo
