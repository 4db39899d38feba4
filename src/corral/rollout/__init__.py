"""Plays episodes against an engine under limits, and scores them.

``Player.play`` turns tasks into groups of episodes, ``score`` adds rewards, and
:func:`corral.rollout.samples.samples` makes training rows of them once advantages are known.
"""

from corral.rollout.limits import Limits
from corral.rollout.played import PlayedGroup
from corral.rollout.player import Player
from corral.rollout.rewards import RewardFunction, Scored, reward_functions, score
from corral.rollout.samples import completion_ids, is_clipped, reward_matrix
from corral.rollout.seeds import derive

__all__ = [
    "Limits",
    "PlayedGroup",
    "Player",
    "RewardFunction",
    "Scored",
    "completion_ids",
    "derive",
    "is_clipped",
    "reward_functions",
    "reward_matrix",
    "score",
]
