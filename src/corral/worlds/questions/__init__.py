"""Questions and a function that scores answers: the smallest way to a world.

::

    from corral.worlds.questions import question_world

    def check(answer: str, row: dict) -> float:
        return float(answer.strip() == row["solution"])

    rows = [{"question": "7 + 5", "solution": "12"}]
    WORLD = question_world(rows, check, name="sums")
"""

from corral.worlds.questions.env import Check, Question, Questions
from corral.worlds.questions.reward import reward_of
from corral.worlds.questions.world import question_world

__all__ = ["Check", "Question", "Questions", "question_world", "reward_of"]
