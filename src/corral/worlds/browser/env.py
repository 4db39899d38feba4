"""A web page as an environment class: a task of MiniWoB, read as an accessibility tree.

Nothing here imports the browser's packages before a first ``reset``, so that the class can be
looked at where they are not installed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.worlds.browser.page import Page, Window

Shown = Any
"""Text; of a class that shows pictures, content blocks."""


class Browser:
    """A page in Chromium with one small task on it.

    ::

        browser = Browser()
        browser.reset(task="click-test-2", seed=1)
        browser.click("13")
        browser.get_reward()          # 1.0
        browser.close()

    All calls come from one thread. What the page shows is cut at ``tree_characters``.
    """

    max_steps = 10
    tree_characters = 2000
    picture_width: int | None = None
    """Width in pixels of a picture of the page that is shown too; None for none."""

    def __init__(self) -> None:
        self._window: Window | None = None
        self._page: Page | None = None
        self._start()
        self.done = True  # until a first reset there is no page

    def reset(self, task: str, seed: int = 0, **kwargs: Any) -> Shown:
        """Open the page of a task.

        Args:
            task: Name of a MiniWoB task, such as ``click-test``.
            seed: Which of its many forms; the same seed gives the same page.
            kwargs: Other columns of the row; not used.
        """
        from corral.worlds.browser.page import Window

        self._start()
        if self._window is None:
            self._window = Window(picture_width=self.picture_width)
        self._page = self._window.open(task, seed)
        return self._shown()

    def click(self, bid: str) -> Shown:
        """Click an element.

        Args:
            bid: The number in brackets before the element.
        """
        return self._act(lambda page: page.click(bid))

    def fill(self, bid: str, text: str) -> Shown:
        """Fill a text field, or choose the entry of a list that has this text.

        Args:
            bid: The number in brackets before the element.
            text: What it is to hold; replaces what it held.
        """
        return self._act(lambda page: page.fill(bid, text))

    def send_keys(self, key: str) -> Shown:
        """Press a key, or several together, where the focus is.

        Args:
            key: A key by name, such as Enter, Tab, ArrowDown, a, or Control+a.
        """
        return self._act(lambda page: page.press(key))

    def scroll(self, x: float, y: float) -> Shown:
        """Turn the mouse wheel.

        Args:
            x: Pixels to the right; negative to the left.
            y: Pixels down; negative up.
        """
        return self._act(lambda page: page.scroll(x, y))

    def noop(self) -> Shown:
        """Do nothing for a second, and look again."""
        return self._act(lambda page: page.wait(1.0))

    def get_reward(self) -> float:
        """What the benchmark says: 1 for a task that is solved, else 0."""
        return float(self.won)

    def close(self) -> None:
        """Close the browser."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _start(self) -> None:
        self.done = False
        self.won = False
        self.steps = 0
        self.failed_steps = 0
        """Steps that could not be done, such as a click on an element that is not there."""
        self.metrics: dict[str, float] = self._measure()

    def _act(self, do: "Callable[[Page], None]") -> Shown:
        if self.done or self._page is None:
            raise ValueError("The episode is over.")
        self.steps += 1
        problem: ValueError | None = None
        try:
            do(self._page)
        except ValueError as error:
            problem = error
            self.failed_steps += 1
        self.won, is_over = self._page.outcome()
        self.done = is_over or self.steps == self.max_steps
        self.metrics = self._measure()
        if problem is not None:
            raise problem
        return self._shown()

    def _shown(self) -> Shown:
        assert self._page is not None
        if self.done:
            end = "solved" if self.won else "not solved, and the episode is over"
            return f"The task is {end}."
        text = (
            f"Goal: {self._page.goal}\n"
            f"Steps left: {self.max_steps - self.steps}\n\n"
            f"{cut(self._page.tree(), self.tree_characters)}"
        )
        if self.picture_width is None:
            return text
        return [
            {"type": "image", "image": self._page.picture()},
            {"type": "text", "text": text},
        ]

    def _measure(self) -> dict[str, float]:
        return {
            "win": float(self.won),
            "steps": float(self.steps),
            "failed_steps": float(self.failed_steps),
        }


class BrowserWithPictures(Browser):
    """The same page, shown as a picture 512 pixels wide and as text."""

    picture_width = 512


def cut(tree: str, characters: int) -> str:
    """The first lines of a tree that fit, and how many there are more."""
    if len(tree) <= characters:
        return tree
    lines = tree.split("\n")
    kept, length = 0, 0
    while kept < len(lines) and length + len(lines[kept]) + 1 <= characters:
        length += len(lines[kept]) + 1
        kept += 1
    return "\n".join([*lines[:kept], f"({len(lines) - kept} more lines)"])
