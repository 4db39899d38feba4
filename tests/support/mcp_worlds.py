"""Worlds for MCP clients."""

from typing import Any


class Safe:
    """A safe with a number."""

    def reset(self, number: int = 7, **kwargs: Any) -> str:
        self._number = number
        self.tries = 0
        self.done = False
        return "The safe is shut."

    def turn(self, to: int) -> str:
        """Turn the lock.

        Args:
            to: Where to.
        """
        self.tries += 1
        self.done = to == self._number
        return "open" if self.done else f"shut after {self.tries}"

    def force(self) -> str:
        """Use a crowbar."""
        raise ValueError("The crowbar broke.")

    def look(self) -> list[dict[str, Any]]:
        """Look at the safe."""
        return [
            {"type": "text", "text": "A safe."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]

    def weigh(self) -> dict[str, float]:
        """Weigh the safe."""
        return {"kilograms": 90.5}

    def get_reward(self) -> float:
        return float(self.done)


class NeedsNumber(Safe):
    """A safe that somebody has to set first."""

    def reset(self, number: int, **kwargs: Any) -> str:
        return super().reset(number, **kwargs)


class Slow(Safe):
    """A safe that hangs."""

    def turn(self, to: int) -> str:
        """Turn the lock.

        Args:
            to: Where to.
        """
        import time

        time.sleep(0.5)
        return "too late"
