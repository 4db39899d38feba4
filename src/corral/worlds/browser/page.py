"""Chromium with a MiniWoB page in it. Imported only where the browser's packages are installed."""

# pyright: reportMissingImports=false

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import miniwob
from browsergym.core.action.utils import get_elem_by_bid
from browsergym.core.constants import BROWSERGYM_ID_ATTRIBUTE
from browsergym.core.observation import (
    MarkingError,
    _post_extract,
    _pre_extract,
    extract_dom_extra_properties,
    extract_dom_snapshot,
    extract_merged_axtree,
)
from browsergym.miniwob.base import AbstractMiniwobTask
from browsergym.utils.obs import (
    IGNORED_AXTREE_PROPERTIES,
    IGNORED_AXTREE_ROLES,
    flatten_axtree_to_str,
)
from playwright.sync_api import Error, Locator, Route, sync_playwright

from corral.errors import InfrastructureFault
from corral.worlds.browser.chromium import chromium_problem, find_chromium

_HTML = Path(str(miniwob.__file__)).parent / "html"
_ORIGIN = "http://miniwob.invalid"
"""A name that no network knows: its pages are files, and all else is refused."""
_VIEWPORT = {"width": 332, "height": 214}
"""What the benchmark's authors show agents."""
_ACTION_TIMEOUT_MS = 2000
"""How long an element may be covered or moving before an action on it has failed."""
_NAVIGATION_TIMEOUT_MS = 20_000
_SETTLING_S = 0.1
"""What the scripts of a page may take after an action; those with animations take longer."""
_READINGS = 3
"""Pages that change while they are read are read again."""
_ROLES_NOT_SHOWN = [*IGNORED_AXTREE_ROLES, "InlineTextBox"]
"""Newer Chromiums split each text into the boxes of its lines."""
_PROPERTIES_NOT_SHOWN = (*IGNORED_AXTREE_PROPERTIES, "url")


class Window:
    """A browser with one page, which goes from task to task and takes nothing along.

    A page anew for each task would take twice as long.
    """

    def __init__(self, *, picture_width: int | None) -> None:
        program = find_chromium()
        if program is None:
            raise RuntimeError(chromium_problem())
        scale = (picture_width or _VIEWPORT["width"]) / _VIEWPORT["width"]
        self._playwright = sync_playwright().start()
        self._playwright.selectors.set_test_id_attribute(BROWSERGYM_ID_ATTRIBUTE)
        self._browser = self._playwright.chromium.launch(executable_path=program)
        self._context = self._browser.new_context(viewport=_VIEWPORT, device_scale_factor=scale)
        self._context.set_default_timeout(_ACTION_TIMEOUT_MS)
        self._context.set_default_navigation_timeout(_NAVIGATION_TIMEOUT_MS)
        self._context.route("**/*", _answer)

    def open(self, task: str, seed: int) -> "Page":
        """Open the page of a task.

        Raises:
            ValueError: There is no such task.
            InfrastructureFault: The browser failed.
        """
        if not (_HTML / "miniwob" / f"{task}.html").is_file() or "/" in task:
            raise ValueError(f"MiniWoB has no task {task!r}. Take one such as 'click-test'.")
        with beneath_the_task():
            return Page(self._browser, self._forgetful_page(), task, seed)

    def close(self) -> None:
        """Close the browser."""
        self._browser.close()
        self._playwright.stop()

    def _forgetful_page(self) -> Any:
        """The page, without what tasks before may have left."""
        first, *others = self._context.pages or [self._context.new_page()]
        for other in others:
            other.close()
        self._context.clear_cookies()
        if first.url.startswith(_ORIGIN):
            first.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            first.mouse.move(0, 0)
        return first


class Page:
    """One page with its task. Everything but the constructor is called after the one before."""

    def __init__(self, browser: Any, page: Any, task: str, seed: int) -> None:
        self._browser = browser
        self._page = page
        self._task: Any = _task_class(task)(seed=seed, base_url=f"{_ORIGIN}/miniwob/")
        goal, _ = self._task.setup(page)
        self.goal: str = " ".join(goal.split())
        """What is to be done."""

    def click(self, bid: str) -> None:
        """Click the element with that number."""
        with self._acting():
            self._element(bid).click()

    def fill(self, bid: str, text: str) -> None:
        """Fill the text field, or choose from the list, with that number."""
        with self._acting():
            element = self._element(bid)
            if element.evaluate("element => element.tagName") == "SELECT":
                element.select_option(label=text)
            else:
                element.fill(text)

    def press(self, key: str) -> None:
        """Press a key."""
        with self._acting():
            self._page.keyboard.press(key)

    def scroll(self, x: float, y: float) -> None:
        """Turn the mouse wheel over the middle of the page."""
        with self._acting():
            self._page.mouse.move(_VIEWPORT["width"] / 2, _VIEWPORT["height"] / 2)
            self._page.mouse.wheel(x, y)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        with self._acting():
            self._page.wait_for_timeout(1000 * seconds)

    def outcome(self) -> tuple[bool, bool]:
        """Whether the task is solved, and whether it is over."""
        with beneath_the_task():
            reward, is_over, _, _ = self._task.validate(self._page, [])
        return reward > 0, bool(is_over)

    def tree(self) -> str:
        """The accessibility tree; elements that can be acted on have their number before them."""
        with beneath_the_task():
            for reading in range(1, _READINGS + 1):
                try:
                    return self._read_tree(is_last=reading == _READINGS)
                except (Error, MarkingError):
                    if reading == _READINGS or self._page.is_closed():
                        raise
                    self._page.wait_for_timeout(1000 * _SETTLING_S)
        raise AssertionError

    def picture(self) -> str:
        """The page as a data URL of a PNG file."""
        with beneath_the_task():
            png = self._page.screenshot(type="png")
        return f"data:image/png;base64,{base64.b64encode(png).decode()}"

    def _read_tree(self, *, is_last: bool) -> str:
        _pre_extract(self._page, lenient=is_last)
        properties = extract_dom_extra_properties(extract_dom_snapshot(self._page), scale_factor=1)
        tree = extract_merged_axtree(self._page)
        _post_extract(self._page)
        _name_clickable(tree["nodes"], properties)
        return flatten_axtree_to_str(
            tree,
            extra_properties=properties,
            with_clickable=True,
            ignored_roles=_ROLES_NOT_SHOWN,
            ignored_properties=_PROPERTIES_NOT_SHOWN,
        )

    def _element(self, bid: str) -> Locator:
        if not bid.isalnum():
            raise ValueError(f"There is no element {bid!r}: give the number in its brackets.")
        return get_elem_by_bid(self._page, bid)

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """An action, and the moment in which the page's scripts answer it.

        Raises:
            ValueError: It cannot be done; the message is for the model.
            InfrastructureFault: The browser or the page is gone.
        """
        try:
            yield
        except Error as error:
            said = _first_line(error)
            if self._page.is_closed() or not self._browser.is_connected() or "crashed" in said:
                raise InfrastructureFault(f"The browser is gone: {said}") from error
            hint = " It may be covered, hidden or disabled." if "Timeout" in said else ""
            raise ValueError(said + hint) from error
        with beneath_the_task():
            self._page.wait_for_timeout(1000 * _SETTLING_S)
            self._page.wait_for_load_state("domcontentloaded")


@contextmanager
def beneath_the_task() -> Iterator[None]:
    """What nobody who plays has a hand in.

    Raises:
        InfrastructureFault: It failed.
    """
    try:
        yield
    except (Error, MarkingError) as error:
        raise InfrastructureFault(f"The browser failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _name_clickable(nodes: list[Any], properties: dict[str, Any]) -> None:
    """Give nodes without a role one if they can be clicked, since those without are not shown.

    Links of scripts are such nodes: text with a listener.
    """
    for node in nodes:
        role = node.get("role", {})
        is_clickable = properties.get(node.get("browsergym_id"), {}).get("clickable")
        if role.get("value") == "generic" and is_clickable:
            role["value"] = "element"
            node.setdefault("name", {"value": ""})


def _task_class(name: str) -> type[Any]:
    return type("MiniwobTask", (AbstractMiniwobTask,), {"subdomain": name})


def _answer(route: Route) -> None:
    """Answer a page's request with a file of the package; nothing else can be reached."""
    place = urlsplit(route.request.url)
    file = (_HTML / place.path.lstrip("/")).resolve()
    is_ours = f"{place.scheme}://{place.netloc}" == _ORIGIN
    if is_ours and file.is_relative_to(_HTML.resolve()) and file.is_file():
        route.fulfill(path=file)
    else:
        route.abort()
