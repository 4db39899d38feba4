"""The browser with tools to make it go wrong, and to look at what it may reach."""

import os
from dataclasses import replace
from typing import Any

from corral.env import OwnProcess
from corral.worlds.browser import WORLD as BROWSER
from corral.worlds.browser.env import Browser

SPEC = f"{__file__}:WORLD"


class StrangeBrowser(Browser):
    """The browser, with more tools than a model has."""

    def hang(self) -> str:
        """Have the page's script run for ever; it begins a moment later."""
        self._script("() => { setTimeout(() => { while (true) {} }, 0) }")
        return "It hangs."

    def reach(self, url: str) -> str:
        """Have the page fetch something, and say whether it could.

        Args:
            url: Where.
        """
        asked = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
        return self._script(asked, url)

    def leave_behind(self) -> str:
        """Store something in the page's site, and say what is stored there."""
        return self._script("() => `${localStorage.length} ${localStorage.setItem('a', 'b')}`")

    def whereabouts(self) -> str:
        """The id of the process."""
        return str(os.getpid())

    def _script(self, code: str, *arguments: Any) -> str:
        assert self._page is not None
        return str(self._page._page.evaluate(code, *arguments))


WORLD = replace(BROWSER, factory=OwnProcess(StrangeBrowser, call_timeout_s=10, reset_timeout_s=120))
