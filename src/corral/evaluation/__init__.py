"""Players over worlds: play, count, report."""

from corral.evaluation.evaluate import (
    Evaluation,
    GameResult,
    play_games,
    result_of,
    summarise,
)

__all__ = ["Evaluation", "GameResult", "play_games", "result_of", "summarise"]
