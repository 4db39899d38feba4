"""Scripted players of OpenSpiel's games."""

import random

from corral.errors import require
from corral.worlds.openspiel.env import OpenSpielGame
from corral.worlds.policy import Policy, PolicyAction

SIMULATIONS = 200
"""Of the search, a move."""
EXPLORATION = 2.0
"""UCT's constant; OpenSpiel's own default."""


def random_player(env: OpenSpielGame, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that takes any legal action."""
    return None if env.done else _act(rng.choice(list(env.legal_actions)))


def searcher(simulations: int = SIMULATIONS) -> Policy:
    """OpenSpiel's Monte Carlo tree search, for games in which nothing is hidden from a seat."""

    def play(env: OpenSpielGame, last_text: str, rng: random.Random) -> PolicyAction | None:
        if env.done:
            return None
        spiel = require("pyspiel", extra="openspiel")
        bot = spiel.MCTSBot(
            env.open_state.get_game(),
            spiel.RandomRolloutEvaluator(n_rollouts=1, seed=rng.randrange(2**31)),
            EXPLORATION,
            simulations,
            max_memory_mb=10,
            solve=True,
            seed=rng.randrange(2**31),
            verbose=False,
        )
        chosen = bot.step(env.open_state)
        return _act(next(name for name, one in env.legal_actions.items() if one == chosen))

    return play


def _act(action: str) -> PolicyAction:
    return PolicyAction(tool="play", arguments={"action": action})
