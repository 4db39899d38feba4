"""Plays episodes against an engine under limits, scores them, and turns them into samples."""

from corral.rollout.blocking import run_blocking
from corral.rollout.limits import Limits
from corral.rollout.played import PlayedGroup
from corral.rollout.player import Player
from corral.rollout.reward_functions import RewardFunction, reward_functions
from corral.rollout.rewards import Scored, score
from corral.rollout.rollout_func import RolloutFunction
from corral.rollout.samples import completion_ids, is_clipped, reward_matrix, samples
from corral.rollout.seeds import derive, shuffled

__all__ = [
    "Limits",
    "PlayedGroup",
    "Player",
    "RewardFunction",
    "RolloutFunction",
    "Scored",
    "completion_ids",
    "derive",
    "is_clipped",
    "reward_functions",
    "reward_matrix",
    "run_blocking",
    "samples",
    "score",
    "shuffled",
]
