"""Make an environment of Gymnasium, and say what it is about."""

import inspect
import re
from importlib import import_module
from typing import Any

from corral.errors import UsageError

_BROUGHT_BY = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
"""Which package registers the environments whose ids begin so."""
_TOLD = ("Action Space", "Observation Space", "Rewards")
"""The sections of an environment's manual that a player needs."""
_SECTION_CHARACTERS = 1500


def brought_by(gym_id: str) -> str | None:
    """The module that registers an environment; None for Gymnasium's own."""
    module, colon, _ = gym_id.partition(":")
    if colon:
        return module
    return next((name for start, name in _BROUGHT_BY.items() if gym_id.startswith(start)), None)


def check_known(gym_id: str) -> None:
    """Raise a `UsageError` where Gymnasium does not know the environment."""
    gymnasium = _registered(gym_id)
    try:
        gymnasium.spec(gym_id.rpartition(":")[2])
    except gymnasium.error.Error as error:
        raise UsageError(f"Gymnasium cannot make {gym_id!r}: {error}") from error


def make(gym_id: str, options: dict[str, Any]) -> Any:
    """The environment, which shows itself as text if it can.

    Raises:
        UsageError: There is none, or it does not take the options.
    """
    gymnasium = _registered(gym_id)
    name = gym_id.rpartition(":")[2]
    check_known(gym_id)
    try:
        options = {**_text_mode(gymnasium, name), "disable_env_checker": True, **options}
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        raise UsageError(f"Gymnasium cannot make {gym_id!r}: {error}") from error


def manual(env: Any) -> str:
    """What the documentation of an environment says of actions, observations and rewards."""
    text = inspect.getdoc(type(env.unwrapped)) or ""
    parts = re.split(r"^ *#{2,4} (.+)$", text, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    told = [
        f"{title}: {sections[title].strip()[:_SECTION_CHARACTERS]}"
        for title in _TOLD
        if title in sections
    ]
    return "\n\n".join(told)


def _registered(gym_id: str) -> Any:
    module = brought_by(gym_id)
    try:
        gymnasium = import_module("gymnasium")
        if module is not None:
            gymnasium.register_envs(import_module(module))
    except ImportError as error:
        raise UsageError(
            f"{gym_id!r} needs a package that is not installed here ({error}). For Gymnasium and "
            "MiniGrid: corral install gymnasium. Others have to be installed beside Corral."
        ) from error
    return gymnasium


def _text_mode(gymnasium: Any, name: str) -> dict[str, str]:
    entry_point = gymnasium.spec(name).entry_point
    loaded = entry_point
    if isinstance(entry_point, str):
        loaded = gymnasium.envs.registration.load_env_creator(entry_point)
    modes = getattr(loaded, "metadata", {}).get("render_modes", ())
    return {"render_mode": "ansi"} if "ansi" in modes else {}
