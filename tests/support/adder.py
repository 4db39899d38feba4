"""An environment with one tool, and that tool's schema."""

from typing import Any

from corral.env import prepare


class Adder:
    def reset(self, **kwargs: Any) -> None:
        pass

    def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: One number.
            b: The other.
        """
        return a + b


TOOLS = list(prepare(Adder).tools.schemas)
