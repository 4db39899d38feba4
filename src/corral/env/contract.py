"""What an environment is, and which of its members a model may call.

An environment is an ordinary class: ``reset`` starts an episode and every other public method is a
tool. It needs no base class; `Environment` only writes the contract down for type checkers.

Members Corral looks at, all but ``reset`` optional:

``reset(**row) -> str | None | list``
    Starts an episode. Receives the whole dataset row, ``prompt`` included. What it returns is
    appended to the prompt's last message: text, a list of content blocks, or nothing.
``get_reward() -> float | None``
    The score of the finished episode; None where it does not apply. Sync or async.
``reward_parts``
    An attribute or property: a mapping of names to the numbers that ``get_reward`` adds up, None
    where one does not apply. Each is a column of rewards by itself, in place of one named after the
    class. It can be read before the first ``reset``, too.
``done``
    An attribute or property that turns true when the episode is over. Looked at only by runs that
    ask for it.
``metrics``
    An attribute or property: a mapping of names to numbers, recorded with the episode.
``close()``
    Frees what the environment holds. Without parameters it is never a tool.
``REQUIRES_OWN_THREAD``
    False on the class lets instances share threads.

One instance plays one episode at a time and is reset for the next one. Its constructor and its
synchronous methods run in one thread of its own, one after the other; its asynchronous methods run
on the event loop.
"""

from typing import Any, Protocol

Observation = str | list[Any] | None
"""What ``reset`` may return: text, content blocks, or nothing to add to the prompt."""

RESERVED_NAMES = frozenset({"reset", "get_reward"})
"""Members a model can never call."""

CLOSE = "close"
"""Reserved as well where it takes no parameter; ``close(door)`` is a tool like any other."""


LARGEST_REWARD = 1e100
"""Rewards are squared to compare them; beyond this their squares leave the range of numbers."""


class Environment(Protocol):
    """A world a model acts in; see the module's text for the optional members.

    ::

        class Coin:
            def reset(self, **kwargs) -> str:
                self.is_won = False
                return "I tossed a coin."

            def call(self, side: Literal["heads", "tails"]) -> str:
                \"\"\"Call the toss.

                Args:
                    side: The side you bet on.
                \"\"\"
    """

    def reset(self, **row: Any) -> Any:
        """Start an episode and return an `Observation` (or a coroutine of one)."""
        ...


def seen_nowhere(environment: object, name: str) -> AttributeError:
    """What to raise for a member of an environment that plays in another process or on a server."""
    return AttributeError(
        f"{type(environment).__name__!r} plays elsewhere, so that only `done`, `metrics`, "
        f"`reward_parts` and `won` of it are seen, and not {name!r}. Put what a reward function "
        "needs into `metrics`."
    )
