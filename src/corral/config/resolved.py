"""A configuration together with where each of its values came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)

DEFAULT = "default"
RECIPE = "recipe"
OVERRIDE = "--set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A command-line option that sets one value, such as ``--seed 3``."""

    name: str
    """As the user typed it; becomes the origin of the value."""
    key: str
    """Dotted name of what it sets."""
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved(Generic[Model]):
    """A validated configuration and its origins."""

    value: Model
    origins: Mapping[str, str]
    """``"recipe"``, ``"--set"``, ``"default"`` or the name of a flag, by dotted name."""
