"""Environments over the network: a server that speaks OpenEnv's protocol, and its client.

Importing this package is cheap; the server's libraries are imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.serve.app import create_app
    from corral.serve.openenv_types import Action, Environment, Observation, State

_HOMES = {
    "Action": "corral.serve.openenv_types",
    "Environment": "corral.serve.openenv_types",
    "Observation": "corral.serve.openenv_types",
    "State": "corral.serve.openenv_types",
    "create_app": "corral.serve.app",
}

__all__ = ["Action", "Environment", "Observation", "State", "create_app"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral.serve' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
