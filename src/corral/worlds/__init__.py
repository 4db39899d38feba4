"""Built-in environments, scripted players for them, and the registry that finds them."""

from corral.worlds.play import (
    PlayedGame,
    PlayedTurn,
    demonstration,
    play_episodes,
    play_scripted,
    summary,
)
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.registry import WORLDS, find_world, world_of
from corral.worlds.world import World

__all__ = [
    "WORLDS",
    "PlayedGame",
    "PlayedTurn",
    "Policy",
    "PolicyAction",
    "World",
    "demonstration",
    "find_world",
    "play_episodes",
    "play_scripted",
    "summary",
    "world_of",
]
