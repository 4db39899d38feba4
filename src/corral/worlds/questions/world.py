"""Questions of one's own as a world, with what is held out for evaluations."""

from collections.abc import Sequence

from corral.errors import UsageError
from corral.worlds.policy import any_caller
from corral.worlds.questions.env import Check, Questions
from corral.worlds.tasks import draw_in_passes
from corral.worlds.world import Row, TaskSource, World

PROMPT = "Answer the question.\n\n"

Rows = Sequence[Row] | TaskSource
"""A list of rows, or ``(seed, count) -> rows``."""


def question_world(
    rows: Rows,
    check: Check,
    *,
    name: str,
    evaluation_rows: Rows | None = None,
    prompt: str = PROMPT,
    attempts: int = 1,
    winning_score: float = 1.0,
) -> World:
    """A world of questions that ``check`` scores.

    Args:
        rows: Each with a ``question``; the check gets the other columns too. A function makes them
            from a seed and a count.
        evaluation_rows: The same for evaluations; without them those of ``rows`` are asked.
        prompt: What stands before the question.
        attempts: Answers that may be given.
        winning_score: From which score on an answer wins.

    Raises:
        UsageError: A row has no question, or there is none.
    """
    draw = _source(rows)
    held_out = draw if evaluation_rows is None else _source(evaluation_rows)

    def tasks(seed: int, count: int) -> list[Row]:
        return [_with_prompt(row, prompt) for row in draw(seed, count)]

    def evaluation_tasks(count: int) -> list[Row]:
        return [_with_prompt(row, prompt) for row in held_out(0, count)]

    return World(
        name=name,
        summary=f"Questions that {getattr(check, '__name__', 'a function')} scores.",
        factory=Questions(check, attempts=attempts, winning_score=winning_score),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": any_caller},
    )


def _source(rows: Rows) -> TaskSource:
    if callable(rows):
        return rows
    if not rows:
        raise UsageError("There are no rows: give at least one with a 'question'.")
    for row in rows:
        _with_prompt(row, "")
    return lambda seed, count: draw_in_passes(rows, seed=seed, count=count)


def _with_prompt(row: Row, prompt: str) -> Row:
    if not isinstance(row.get("question"), str):
        raise UsageError(f"The row {row!r:.80} has no text 'question'.")
    return {"prompt": prompt, **row}
