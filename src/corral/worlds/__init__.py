"""Built-in environments, scripted players for them, and the registry that finds them."""

from corral.worlds.needs import Needs
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.registry import FAMILIES, WORLDS, added_worlds, find_world, world_of
from corral.worlds.world import World

__all__ = [
    "FAMILIES",
    "WORLDS",
    "Needs",
    "Policy",
    "PolicyAction",
    "World",
    "added_worlds",
    "find_world",
    "world_of",
]
