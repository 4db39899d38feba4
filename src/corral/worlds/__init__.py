"""Built-in environments, scripted players for them, and the registry that finds them."""

from corral.worlds.family import Family
from corral.worlds.needs import Needs
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.registry import (
    FAMILIES,
    WORLDS,
    added_worlds,
    find_installable,
    find_world,
    world_of,
)
from corral.worlds.world import World

__all__ = [
    "FAMILIES",
    "WORLDS",
    "Family",
    "Needs",
    "Policy",
    "PolicyAction",
    "World",
    "added_worlds",
    "find_installable",
    "find_world",
    "world_of",
]
