"""Models over worlds: play, count, report."""

from corral.evaluation.evaluate import Evaluation, play_games, summarise

__all__ = ["Evaluation", "play_games", "summarise"]
