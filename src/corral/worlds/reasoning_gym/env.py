"""A question of Reasoning Gym as an environment class."""

from importlib import import_module
from typing import Any

from corral.errors import UsageError
from corral.worlds.family import nearest


class ReasoningTask:
    """Questions of one generator, each answered once.

    ::

        task = ReasoningTask("leg_counting", max_animals=3)
        print(task.reset(seed=7))
        task.answer("12")
        task.get_reward()            # what the generator's score_answer says
    """

    def __init__(self, generator: str, **settings: Any) -> None:
        """
        Args:
            generator: As Reasoning Gym calls it.
            settings: Of the generator's configuration.

        Raises:
            UsageError: There is none, or it does not take these settings.
        """
        check_known(generator)
        self._generator, self._settings = generator, settings
        self._draw(seed=0)
        self._begin()
        self.done = True  # until a first reset there is nothing to answer

    def reset(self, seed: int = 0, **row: Any) -> str:
        """Ask a question.

        Args:
            seed: Which; the same one asks the same.
            row: Other columns of the row; not used.
        """
        self._draw(seed)
        self._begin()
        return self._entry["question"]

    def answer(self, text: str) -> str:
        """Give the final answer.

        Args:
            text: The answer alone, in the form that the question asks for.
        """
        if self.done:
            raise ValueError("The question was answered.")
        self.done = True
        self.score = float(self._data.score_answer(text, entry=self._entry))
        self.won = self.score >= 1.0
        self._measure()
        return "Right." if self.won else f"The answer scores {self.score:.2f} of 1."

    def get_reward(self) -> float:
        """The answer's score, mostly from 0 to 1; 0 for none."""
        return self.score

    def _draw(self, seed: int) -> None:
        gym: Any = import_module("reasoning_gym")
        try:
            self._data = gym.create_dataset(
                self._generator, **{**self._settings, "size": 1, "seed": seed}
            )
        except (TypeError, ValueError, AssertionError) as error:
            raise UsageError(
                f"Reasoning Gym cannot make {self._generator!r} with {self._settings}: {error}"
            ) from error
        self._entry: dict[str, Any] = self._data[0]

    def _begin(self) -> None:
        self.done = False
        self.won = False
        self.score = 0.0
        self._measure()

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {"win": float(self.won)}


def check_known(generator: str) -> None:
    """Raise a `UsageError` where Reasoning Gym has no such generator."""
    # The package first: another thread may be importing it, and fills this list meanwhile.
    import_module("reasoning_gym")
    known = import_module("reasoning_gym.factory").DATASETS
    if generator not in known:
        hint = nearest(generator, known)
        raise UsageError(
            f"Reasoning Gym has no generator {generator!r}.{hint} It has {len(known)}."
        )
