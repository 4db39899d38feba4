"""Environments that behave and misbehave in processes of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal


class Handful:
    """A world that does whatever it is told, good or bad."""

    def __init__(self) -> None:
        self.done = False
        self.metrics = {"calls": 0.0}
        self.won = False

    def reset(self, start: int = 0, **row: Any) -> str:
        """Start."""
        if start < 0:
            raise ValueError(f"start={start}")
        self.total, self.done, self.won = start, False, False
        self.metrics = {"calls": 0.0}
        return f"at {start}"

    def add(self, numbers: list[int], how: Literal["plus", "minus"] = "plus") -> int:
        """Add numbers.

        Args:
            numbers: What to add.
            how: Whether to add or to subtract.

        Returns:
            The sum.
        """
        self.metrics["calls"] += 1
        self.total += sum(numbers) if how == "plus" else -sum(numbers)
        self.done = self.won = self.total >= 10
        return self.total

    async def look(self) -> list[dict[str, Any]]:
        """Look around."""
        return [{"type": "text", "text": f"at {self.total}"}]

    def fail(self, how: str) -> str:
        """Go wrong.

        Args:
            how: In which way.
        """
        match how:
            case "raise":
                raise KeyError("no such thing")
            case "lose connection":
                raise ConnectionError("the cable")
            case "hang":
                time.sleep(600)
            case "exit":
                os._exit(3)
        return how

    def breed(self) -> str:
        """Start a process in a session of its own, as browsers do; it answers with its id."""
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        return str(child.pid)

    def whereabouts(self) -> str:
        """Where the process is and keeps temporary files."""
        (Path(os.environ["TMPDIR"]) / "left-behind").write_text("x")
        return f"{os.getpid()} {os.environ['TMPDIR']}"

    def get_reward(self) -> float:
        """The sum."""
        return float(self.total)
