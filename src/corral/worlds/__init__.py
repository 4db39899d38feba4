"""Built-in environments, scripted players for them, and the registry that finds them."""

from corral.worlds.needs import Needs
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.registry import WORLDS, find_world, world_of
from corral.worlds.world import World

__all__ = [
    "WORLDS",
    "Needs",
    "Policy",
    "PolicyAction",
    "World",
    "find_world",
    "world_of",
]
