"""What Corral knows about a playable world beside its environment class."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corral.errors import UsageError
from corral.worlds.needs import Needs
from corral.worlds.policy import Policy, PolicyAction

__all__ = ["Policy", "PolicyAction", "Row", "TaskSource", "World"]

logger = logging.getLogger(__name__)

Row = dict[str, Any]
"""One dataset row: ``prompt`` and the columns that ``reset`` takes."""

TaskSource = Callable[[int, int], list[Row]]
"""``(seed, count) -> rows``: the same seed gives the same rows."""


def was_won(environment: Any) -> bool:
    """Whether an environment says of itself that it was won, in an attribute ``won``."""
    try:
        # Equal, not identical: NumPy has a truth of its own. A text is none.
        return bool(getattr(environment, "won", False) == True)  # noqa: E712
    except Exception as error:  # noqa: BLE001 – a property is the user's code
        logger.warning("%s.won raised, so it counts as lost: %r", type(environment).__name__, error)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An environment class with the tasks to play in it and players to try it with."""

    name: str
    summary: str
    """One sentence for ``corral list``."""
    factory: Callable[[], Any]
    """Makes one environment; takes no arguments."""
    tasks: TaskSource
    """What to train on."""
    evaluation_tasks: Callable[[int], list[Row]]
    """``count -> rows``: always the same ones, whatever the seed of the run."""
    is_win: Callable[[Any], bool] = was_won
    """Whether the environment, after its episode, was won."""
    game_column: str | None = None
    """Which column of a row says what is played, in a world of several games; each has its own
    results."""
    needs: Needs | None = None
    """What its environments import beside Corral; None for nothing."""
    policies: Mapping[str, Policy] = field(default_factory=dict[str, Policy])

    @property
    def home(self) -> str:
        """What its virtual environment is called, where it needs one."""
        return (self.needs and self.needs.shared_as) or self.name

    def game_of(self, row: Mapping[str, Any]) -> str | None:
        """Which of its games a row plays; None in a world of one game."""
        return None if self.game_column is None else str(row[self.game_column])

    def policy(self, name: str) -> Policy:
        """The scripted player called ``name``."""
        if name not in self.policies:
            have = ", ".join(sorted(self.policies)) or "none"
            raise UsageError(f"{self.name} has no policy {name!r}. It has: {have}.")
        return self.policies[name]

    def on(self, rows: Sequence[Mapping[str, Any]]) -> "World":
        """The same world on rows of data, taken in order and again from the start.

        A seed is the number of the first row, so that the game of seed 3 plays ``rows[3]``.
        """

        def tasks(seed: int, count: int) -> list[Row]:
            return [dict(rows[(seed + place) % len(rows)]) for place in range(count)]

        return replace(self, tasks=tasks, evaluation_tasks=lambda count: tasks(0, count))
