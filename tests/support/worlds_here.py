"""The built-in worlds that are played in the process of the tests, whatever is installed."""

from corral.worlds import WORLDS

WORLDS_HERE = sorted(name for name, world in WORLDS.items() if world.needs is None)
