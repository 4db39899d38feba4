"""Scripted players of echo: each says one thing and stops."""

import random
import string

from corral.worlds.echo.env import Echo
from corral.worlds.policy import Policy, PolicyAction

LONG_ENOUGH = "hello, echo!"


def random_player(env: Echo, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that says 0 to 12 random letters."""
    if env.messages:
        return None
    message = "".join(rng.choices(string.ascii_lowercase, k=rng.randint(0, len(LONG_ENOUGH))))
    return PolicyAction(tool="echo", arguments={"message": message})


def talkative_solver(env: Echo, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that says enough for the whole reward."""
    if env.messages:
        return None
    return PolicyAction(
        tool="echo", arguments={"message": LONG_ENOUGH}, thought="Longer is better."
    )


POLICIES: dict[str, Policy] = {"random": random_player, "solver": talkative_solver}
