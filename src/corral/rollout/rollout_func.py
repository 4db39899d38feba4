"""Custom rollouts: a function of the user's plays, and what it returns become episodes.

The function is called once for each generation (and process), with one prompt for each completion
that is wanted, the members of a group behind each other, and returns one entry for each::

    def rollout(prompts, trainer):
        return {
            "prompt_ids": [...],      # token ids the model was given
            "completion_ids": [...],  # token ids that followed, the model's and others'
            "logprobs": [...],        # of each completion id when it was sampled, or None
            "env_mask": [...],        # optional: 1 where the model wrote the id, 0 where not
            "score": [...],           # optional: anything else goes to the reward functions
        }

Episodes made here are the same records as those of the player, so nothing behind them differs.

Images are those of the prompts, as in the data: they stand in the messages that the function gets,
and ``prompt_ids`` must have the placeholders that the processor makes of them.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from corral.chat.images import ImageReader
from corral.chat.pictures import has_image, pictures_of
from corral.chat.tokenizer import Tokenizer, plain_text
from corral.errors import EnvironmentFault, ImageError, UsageError
from corral.records import (
    Episode,
    Finish,
    Group,
    Message,
    Outcome,
    PlacedImage,
    Sampled,
    SpanKind,
    Task,
    Transcript,
)
from corral.rollout.played import PlayedGroup
from corral.rollout.returned import Completion, TokenBounds, completions_of

RolloutFunction = Callable[[list[Any], Any], Mapping[str, Any]]
"""``(prompts, trainer) -> {"prompt_ids", "completion_ids", "logprobs", ...}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRules:
    """What ids that come from outside are checked against, and how they are read."""

    tokenizer: Tokenizer
    end_ids: frozenset[int]
    """A completion that ends in one of these was not cut off."""
    bounds: TokenBounds
    version: int
    """Version of the weights while the function ran."""
    images: ImageReader | None = None
    """What reads images; None for a model that reads text only."""


def prompts_for(tasks: Sequence[Task], members: int) -> list[Any]:
    """The prompts of a call: each task's ``members`` times, as messages, or text if the data has
    text and no images. They are copies, so the function may change them."""
    return [
        task.columns["prompt"] if _is_text(task) else deepcopy(list(task.prompt))
        for task in tasks
        for _ in range(members)
    ]


def _is_text(task: Task) -> bool:
    is_alone = not any(map(has_image, task.prompt))
    return is_alone and isinstance(task.columns.get("prompt"), str)


def groups_from(
    returned: Any, tasks: Sequence[Task], members: int, rules: RolloutRules, *, seconds: float
) -> list[PlayedGroup]:
    """The groups that a rollout function's return value stands for.

    A completion without any token (or None in its place), and one that is longer than the model's
    context, is an ENVIRONMENT_FAULT: it leaves its group without a reward.

    Args:
        returned: One entry for each of :func:`prompts_for` under each key.
        tasks: With pictures as ``ChatFormat.loaded`` gives them.
        seconds: Wall time of the call.

    Raises:
        UsageError: A key is missing, or an entry has the wrong length, type or values.
        EnvironmentFault: Not one completion can be used.
    """
    completions = completions_of(returned, len(tasks) * members, rules.bounds)
    faults = [one.fault for one in completions if one.fault is not None]
    if completions and len(faults) == len(completions):
        raise EnvironmentFault(
            f"All {len(faults)} completions are unusable. The first: {faults[0]}"
        )
    groups: list[PlayedGroup] = []
    for place, task in enumerate(tasks):
        own = completions[place * members : (place + 1) * members]
        episodes = tuple(
            _episode(one, task, member, rules, seconds) for member, one in enumerate(own)
        )
        groups.append(
            PlayedGroup(
                group=Group(task=task, episodes=episodes),
                environments=(None,) * members,
                is_text=_is_text(task),
            )
        )
    return groups


def _episode(
    completion: Completion, task: Task, member: int, rules: RolloutRules, seconds: float
) -> Episode:
    images = () if completion.fault is not None else _images(completion, task, rules)
    prompt = Transcript().append(SpanKind.PROMPT, completion.prompt_ids, images=images)
    transcript, turns = _transcript(prompt, completion, rules)
    answer: Message = {"role": "assistant", "content": plain_text(rules.tokenizer, completion.ids)}
    outcome = Outcome.FINISHED
    if completion.fault is not None:
        outcome = Outcome.ENVIRONMENT_FAULT
    elif completion.ids[-1] not in rules.end_ids:
        outcome = Outcome.OUT_OF_TOKENS
    return Episode(
        task=replace(task, columns={**task.columns, **completion.extra}),
        member=member,
        messages=(*task.prompt, *(() if completion.fault is not None else (answer,))),
        transcript=transcript,
        outcome=outcome,
        turns=turns,
        seconds={"sample": seconds, "total": seconds},
        error=completion.fault,
        completion_start=len(task.prompt),
    )


def _images(completion: Completion, task: Task, rules: RolloutRules) -> Sequence[PlacedImage]:
    """The images of the prompt among its ids.

    Raises:
        UsageError: The ids have other placeholders than the images take, or what others wrote in
            the completion has any: nobody says which image that would be.
    """
    reader = rules.images
    if reader is None:
        return ()
    pairs = zip(completion.ids, completion.is_sampled, strict=True)
    if any(token == reader.token_id and not is_sampled for token, is_sampled in pairs):
        raise UsageError(
            f"rollout_func: the completion_ids of task {task.index} have {reader.token!r} where "
            "env_mask is 0: a rollout function can show images in prompts only. Play environments "
            "that show some with environment_factory."
        )
    try:
        return reader.find(completion.prompt_ids, pictures_of(task.prompt))
    except ImageError as error:
        raise UsageError(
            f"rollout_func: prompt_ids of task {task.index}: {error} Make them with "
            "trainer.processing_class.apply_chat_template(prompt, add_generation_prompt=True, "
            "tokenize=True, return_dict=True)."
        ) from error


def _transcript(
    transcript: Transcript, completion: Completion, rules: RolloutRules
) -> tuple[Transcript, int]:
    """The tokens as spans behind the prompt's, and how many the model sampled in one go."""
    turns = 0
    for is_sampled, places in groupby(
        range(len(completion.ids)), completion.is_sampled.__getitem__
    ):
        span = list(places)
        start, end = span[0], span[-1] + 1
        ids = completion.ids[start:end]
        if not is_sampled:
            transcript = transcript.append(SpanKind.TOOL, ids)
            continue
        sampled = Sampled(
            ids=ids,
            logprobs=completion.logprobs[start:end],
            finish=Finish.STOP if ids[-1] in rules.end_ids else Finish.LENGTH,
            version=rules.version,
        )
        transcript = transcript.append_sampled(sampled)
        turns += 1
    return transcript, turns
