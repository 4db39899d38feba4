"""Find an environment of verifiers, and give its one open seat to our model."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corral.errors import UsageError
from corral.worlds.textarena.loading import provide_words

_HERE = {"type": "subprocess"}
"""Where verifiers runs what it starts; by default that is a hosted service."""


def load(name: str, settings: Mapping[str, Any], env: Mapping[str, Any]) -> tuple[Any, str]:
    """The environment, and which of its agents our model plays.

    Args:
        name: A taskset: a module or package that can be imported, or the path of a file.
        settings: Of the taskset's configuration.
        env: Of the environment's, as verifiers' ``[env]`` block.

    Raises:
        UsageError: There is none, or it does not take these settings.
    """
    taskset = _importable(name)
    if taskset == "textarena":
        provide_words()
    loaders: Any = import_module("verifiers.v1.utils.loaders")
    harness = import_module("corral.worlds.verifiers.harness").HARNESS_ID
    try:
        seats = _seats(loaders.env_config_type(taskset, env.get("id", "")))
        seat = _own_seat(name, seats, env)
        agents = {other: {"runtime": _HERE} | dict(env.get(other, {})) for other in seats}
        agents[seat] = {"harness": {"id": harness}} | agents[seat]
        told = {**env, **agents, "taskset": {**settings, "id": taskset}}
        return loaders.load_environment(loaders.resolve_env_config(told)), seat
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        raise UsageError(
            f"verifiers cannot find {name!r}: {error}. Install its package where verifiers is, or "
            "write the path of its file: verifiers:PATH.py"
        ) from error
    except Exception as error:
        raise UsageError(
            f"verifiers cannot make {name!r} with {dict(settings)}: {type(error).__name__}: {error}"
        ) from error


def _importable(name: str) -> str:
    """The name of the module; its folder is told to tool servers, which are programs of their own.

    A module in the current folder is found as well.
    """
    path = Path(name).expanduser().resolve() if name.endswith(".py") else Path.cwd() / f"{name}.py"
    if name.endswith(".py") and not path.is_file():
        raise UsageError(f"There is no file {name!r} (looked for {path}).")
    if not path.is_file() or _is_builtin(path.stem):
        return name
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    known = os.environ.get("PYTHONPATH", "")
    if folder not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [known, folder]))
    return path.stem


def _is_builtin(name: str) -> bool:
    return find_spec(f"verifiers.v1.tasksets.{name}") is not None


def _seats(config: Any) -> dict[str, Any]:
    """The agents of an environment, each with what it is by default."""
    agent_config = import_module("verifiers.v1").AgentConfig
    defaults = {name: one.default for name, one in config.model_fields.items()}
    return {name: one for name, one in defaults.items() if isinstance(one, agent_config)}


def _own_seat(name: str, seats: Mapping[str, Any], env: Mapping[str, Any]) -> str:
    """The one agent that has no model of its own."""
    own = [
        seat
        for seat, default in seats.items()
        if default.client is None and "client" not in env.get(seat, {})
    ]
    if len(own) != 1:
        raise UsageError(
            f"{name} has agents without a model: {', '.join(own) or 'none'}. Exactly one is played "
            "here; give each other one an endpoint: "
            "env={'AGENT': {'client': {'base_url': 'http://...'}, 'model': '...'}}"
        )
    return own[0]
