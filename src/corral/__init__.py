"""Corral trains language-model agents by letting them act in environments.

Importing ``corral`` is cheap: names that need torch are imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.errors import (
        CorralError,
        EnvironmentFault,
        InfrastructureFault,
        MissingExtraError,
        TemplateError,
        ToolDefinitionError,
        UsageError,
    )
    from corral.serve.client import EnvClient, RemoteEnvironment, SessionLostError
    from corral.training import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

_HOMES = {
    "CorralError": "corral.errors",
    "EnvClient": "corral.serve.client",
    "EnvironmentFault": "corral.errors",
    "GRPOConfig": "corral.training",
    "GRPOTrainer": "corral.training",
    "InfrastructureFault": "corral.errors",
    "MissingExtraError": "corral.errors",
    "RemoteEnvironment": "corral.serve.client",
    "SFTConfig": "corral.training",
    "SFTTrainer": "corral.training",
    "SessionLostError": "corral.serve.client",
    "TemplateError": "corral.errors",
    "ToolDefinitionError": "corral.errors",
    "UsageError": "corral.errors",
}

_EXTRAS = {"corral.serve.client": "serve", "corral.training": "train"}
"""What brings the packages that a home needs."""

__all__ = [
    "CorralError",
    "EnvClient",
    "EnvironmentFault",
    "GRPOConfig",
    "GRPOTrainer",
    "InfrastructureFault",
    "MissingExtraError",
    "RemoteEnvironment",
    "SFTConfig",
    "SFTTrainer",
    "SessionLostError",
    "TemplateError",
    "ToolDefinitionError",
    "UsageError",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral' has no attribute {name!r}")
    home = _HOMES[name]
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(home)
        if extra is None or error.name is None or error.name.startswith("corral"):
            raise
        from corral.errors import MissingExtraError

        raise MissingExtraError(
            f"corral.{name} needs {error.name!r}, which is not installed. Install it with: "
            f"pip install 'corral[{extra}]'"
        ) from error


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
