"""Checks what a rollout function returned, entry by entry."""

import logging
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from corral.errors import UsageError

_logger = logging.getLogger(__name__)

REQUIRED = ("completion_ids", "logprobs", "prompt_ids")
MASK = "env_mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One entry of what the function returned, checked."""

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """NaN where none is known."""
    is_sampled: tuple[bool, ...]
    extra: Mapping[str, Any]
    """For reward functions."""
    fault: str | None
    """Why nothing can be learned from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBounds:
    """What ids that come from outside must stay within."""

    vocabulary: int
    """Ids are below this."""
    max_context: int
    """Most tokens of prompt and completion together."""


def completions_of(returned: Any, count: int, bounds: TokenBounds) -> list[Completion]:
    """Check what a rollout function returned for ``count`` prompts.

    Raises:
        UsageError: A key is missing, or an entry has the wrong length, type or values.
    """
    if not isinstance(returned, Mapping):
        raise UsageError(
            f"rollout_func returned {returned!r:.80}: return a dict with the keys "
            f"{', '.join(map(repr, REQUIRED))}."
        )
    given = cast(Mapping[Any, Any], returned)
    values: dict[str, Any] = {str(name): value for name, value in given.items()}
    missing = [name for name in REQUIRED if name not in values]
    if missing:
        raise UsageError(
            f"rollout_func must return keys {missing} in its output dict; it returned "
            f"{sorted(values)}. Where no logprobs are known, give logprobs=None."
        )
    known = {name: _entries(name, values.pop(name, None), count) for name in (*REQUIRED, MASK)}
    _check_extra(values, count)
    return [
        _completion(
            place,
            {name: entries[place] for name, entries in known.items()},
            {name: _own(value, place) for name, value in values.items()},
            bounds,
        )
        for place in range(count)
    ]


def _completion(
    place: int, entry: Mapping[str, Any], extra: Mapping[str, Any], bounds: TokenBounds
) -> Completion:
    prompt_ids = _ids(f"prompt_ids[{place}]", entry["prompt_ids"], bounds)
    if not prompt_ids:
        raise UsageError(
            f"rollout_func: prompt_ids[{place}] is empty: the first token of a completion has a "
            "probability only after at least one other."
        )
    ids = _ids(f"completion_ids[{place}]", entry["completion_ids"], bounds)
    fault = _fault(place, len(prompt_ids), len(ids), bounds)
    if fault is not None:
        _logger.warning("%s The episode leaves its group without a reward.", fault)
        return Completion(
            prompt_ids=prompt_ids, ids=(), logprobs=(), is_sampled=(), extra=extra, fault=fault
        )
    return Completion(
        prompt_ids=prompt_ids,
        ids=ids,
        logprobs=_logprobs(place, entry["logprobs"], len(ids)),
        is_sampled=_mask(place, entry[MASK], len(ids)),
        extra=extra,
        fault=None,
    )


def _fault(place: int, prompt: int, completion: int, bounds: TokenBounds) -> str | None:
    """What a task or a server may cause now and then; it must not end the run."""
    if not completion:
        return f"rollout_func: completion_ids[{place}] is empty."
    if prompt + completion > bounds.max_context:
        return (
            f"rollout_func: prompt and completion {place} have {prompt + completion} tokens, but "
            f"the model's context is {bounds.max_context}."
        )
    return None


def _entries(name: str, value: Any, count: int) -> list[Any]:
    if value is None and name in (MASK, "logprobs"):
        return [None] * count
    if value is None or isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        raise UsageError(f"rollout_func: {name} is {value!r:.80}: give a list for each prompt.")
    entries: list[Any] = [*value]
    if len(entries) != count:
        raise UsageError(
            f"rollout_func: {name} has {len(entries)} entries for {count} prompts: give one for "
            "each prompt, in order (a prompt comes once for each of its completions)."
        )
    return entries


def _ids(name: str, value: Any, bounds: TokenBounds) -> tuple[int, ...]:
    ids = _numbers(
        name, () if value is None else value, operator.index, "token ids (whole numbers)"
    )
    wrong = next((token for token in ids if not 0 <= token < bounds.vocabulary), None)
    if wrong is not None:
        raise UsageError(
            f"rollout_func: {name} has the token id {wrong}, but the model knows 0 to "
            f"{bounds.vocabulary - 1}: were they made by another tokenizer?"
        )
    return ids


def _mask(place: int, value: Any, count: int) -> tuple[bool, ...]:
    if value is None:
        return (True,) * count
    name = f"{MASK}[{place}]"
    mask = _numbers(name, value, operator.index, "zeros and ones")
    _check_length(name, len(mask), count)
    if not set(mask) <= {0, 1}:
        raise UsageError(f"rollout_func: {name} has the value {max(mask)}: 1 is the model, 0 not.")
    return tuple(map(bool, mask))


def _logprobs(place: int, value: Any, count: int) -> tuple[float, ...]:
    if value is None:
        return (math.nan,) * count
    name = f"logprobs[{place}]"
    logprobs = _numbers(name, value, _logprob, "one number (or None) for each token")
    _check_length(name, len(logprobs), count)
    if any(map(math.isinf, logprobs)):
        raise UsageError(
            f"rollout_func: {name} has an infinite value: no token with probability 0 is ever "
            "sampled. Give None where a logprob is not known."
        )
    return logprobs


def _logprob(value: Any) -> float:
    if isinstance(value, str) or (value is not None and not hasattr(value, "__float__")):
        raise TypeError
    return math.nan if value is None else float(value)


def _numbers(name: str, value: Any, convert: Callable[[Any], Any], what: str) -> tuple[Any, ...]:
    plain = value.tolist() if hasattr(value, "tolist") else value
    try:
        return tuple(convert(each) for each in plain)
    except TypeError as error:
        raise UsageError(
            f"rollout_func: {name} is {plain!r:.80}: give a list of {what}."
        ) from error


def _check_length(name: str, found: int, expected: int) -> None:
    if found != expected:
        raise UsageError(
            f"rollout_func: {name} has {found} values for {expected} completion ids: give one for "
            "each."
        )


def _own(value: Any, place: int) -> Any:
    return value[place] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _check_extra(extra: Mapping[str, Any], count: int) -> None:
    for name, value in extra.items():
        entries = len(value) if _is_list(value) else count
        if entries != count:
            raise UsageError(
                f"rollout_func: {name} has {entries} entries for {count} prompts: a list has "
                "one for each; something that is the same for all may be a tuple."
            )
