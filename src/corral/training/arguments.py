"""Arguments of the trainer that are something else than they should be, told at once."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.errors import UsageError, WrongTypeError
from corral.training.grpo_config import GRPOConfig
from corral.training.rollout_func import refuse_what_does_not_fit

logger = logging.getLogger(__name__)


def configuration_of(args: Any) -> GRPOConfig:
    """The configuration; None is the default one.

    Raises:
        WrongTypeError: It is something else.
    """
    if args is None:
        return GRPOConfig()
    if isinstance(args, GRPOConfig):
        return args
    what = f"{type(args).__module__}.{type(args).__name__}".removeprefix("builtins.")
    if isinstance(args, Mapping):
        raise WrongTypeError(f"args is a {what}: give corral.GRPOConfig(**args).")
    raise WrongTypeError(f"args is a {what}: give a corral.GRPOConfig.")


def check_arguments(tools: Any, environment_factory: Any, rollout_func: Any) -> Sequence[Any]:
    """Check what needs no model to be checked; the tools, as a sequence.

    Raises:
        UsageError: Arguments do not go together.
        WrongTypeError: An argument is something else than it should be.
    """
    listed = _listed_tools(tools)
    _check_factory(environment_factory)
    refuse_what_does_not_fit(rollout_func, environment_factory, listed)
    return listed


def _listed_tools(tools: Any) -> Sequence[Any]:
    """Tools as a sequence; None is no tools.

    Raises:
        WrongTypeError: It is one function, or no list.
    """
    if tools is None:
        return ()
    if callable(tools):
        name = getattr(tools, "__name__", "tool")
        raise WrongTypeError(f"tools is the one function {name!r}: give a list, tools=[{name}].")
    if isinstance(tools, str | Mapping) or not isinstance(tools, Sequence):
        raise WrongTypeError(f"tools={tools!r:.60}: give a list of functions.")
    return tools


def _check_factory(factory: Any) -> None:
    """Check that an environment factory can be called, or is a dict of such.

    Raises:
        WrongTypeError: It is not; text is told how to become a class.
    """
    factories = factory if isinstance(factory, Mapping) else {None: factory}
    for name, one in factories.items():
        if (one is None and name is None) or callable(one):
            continue
        place = "environment_factory" if name is None else f"environment_factory[{name!r}]"
        if isinstance(one, str):
            raise WrongTypeError(
                f"{place}={one!r} is text: give the class itself, such as "
                f"corral.env.resolve({one!r})."
            )
        raise WrongTypeError(
            f"{place} is a {type(one).__name__}, which cannot be called: give the class, not an "
            "instance of it."
        )


def quantized(
    loading_kwargs: dict[str, Any], quantization_config: Any, model: Any
) -> dict[str, Any]:
    """What ``from_pretrained`` gets, the quantisation among it.

    Raises:
        UsageError: It is given twice.
    """
    if quantization_config is None:
        return loading_kwargs
    if "quantization_config" in loading_kwargs:
        raise UsageError(
            "quantization_config is given to the trainer and in model_init_kwargs: give it once."
        )
    if not isinstance(model, str | Path):
        logger.warning("quantization_config has no effect on a model that is loaded already.")
        return loading_kwargs
    return {**loading_kwargs, "quantization_config": quantization_config}
