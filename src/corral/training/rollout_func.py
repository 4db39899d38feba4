"""Lets a function of the user's play instead of the built-in loop."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from torch import nn

from corral.chat import ChatFormat
from corral.engines.protocol import Engine
from corral.errors import UsageError
from corral.records import Task
from corral.rollout import PlayedGroup
from corral.rollout.returned import TokenBounds
from corral.rollout.rollout_func import RolloutFunction, RolloutRules, groups_from, prompts_for
from corral.training.learner import Learner


class _Trainer(Protocol):
    """What is needed of the trainer here; the function gets the trainer itself."""

    model: nn.Module
    processing_class: Any
    chat: ChatFormat
    engine: Engine
    learner: Learner


def play_with(
    function: RolloutFunction, trainer: _Trainer, tasks: Sequence[Task], members: int
) -> list[PlayedGroup]:
    """Call the function for this process's tasks, each ``members`` times; what it returns.

    The weights it meets are the newest ones, in ``trainer.model`` and in ``trainer.engine``. The
    model is in evaluation mode meanwhile. What the function raises is raised.
    """
    tokenizer = trainer.chat.renderer.tokenizer
    rules = RolloutRules(
        tokenizer=tokenizer,
        end_ids=trainer.chat.stop_ids | _pad_id(tokenizer),
        bounds=TokenBounds(
            vocabulary=trainer.model.get_input_embeddings().num_embeddings,  # type: ignore[operator]
            max_context=trainer.engine.max_context(),
        ),
        version=trainer.learner.step,
        images=trainer.chat.images,
    )
    tasks = [replace(task, prompt=tuple(trainer.chat.loaded(task.prompt))) for task in tasks]
    prompts = prompts_for(tasks, members)
    trainer.model.eval()
    started = time.perf_counter()
    returned = function(prompts, trainer)
    seconds = time.perf_counter() - started
    return groups_from(returned, tasks, members, rules, seconds=seconds)


def refuse_what_does_not_fit(
    function: RolloutFunction | None, environment_factory: object, tools: Sequence[object]
) -> None:
    """Say at once that a rollout function cannot be called, or would make others unused."""
    if function is None:
        return
    if not callable(function):
        raise UsageError(
            f"rollout_func is {function!r:.80}: give a function (prompts, trainer) -> dict."
        )
    for name, value in (("environment_factory", environment_factory), ("tools", tools)):
        if value:
            raise UsageError(
                f"rollout_func plays whole episodes itself, so {name} would never be used: leave "
                "one of the two out, and call the environment from within the function."
            )


def _pad_id(tokenizer: Any) -> frozenset[int]:
    pad: int | None = tokenizer.pad_token_id
    return frozenset() if pad is None else frozenset({pad})
