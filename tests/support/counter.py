"""The counting environment that the reference's own tests use."""

from typing import Any


class Counter:
    """Its reward is its count; ``reset`` returns the row's column ``observed``."""

    def __init__(self) -> None:
        self.count = 0

    def reset(self, **row: Any) -> Any:
        self.count = 0
        return row.get("observed")

    def increment(self, step: int) -> int:
        """Add to the counter.

        Args:
            step: How much.
        """
        self.count += step
        return self.count

    def _double(self) -> None:
        self.count *= 2

    def get_reward(self) -> float:
        return float(self.count)
