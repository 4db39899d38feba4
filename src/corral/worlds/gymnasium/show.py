"""What an environment shows, as text."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from corral.errors import UsageError

MAX_NUMBERS = 200
"""Beyond this an observation is a picture, or nothing that a model could read."""

_COLOURS = {0: "grey", 1: "red", 2: "green", 3: "yellow", 4: "blue", 5: "magenta", 6: "cyan"}
_COLOURED = re.compile(r"\x1b\[(?P<code>\d+)(?:;\d+)*m(?P<text>.*?)\x1b\[0m", re.DOTALL)
_CONTROL = re.compile(r"\x1b\[[\d;]*m")
_GRID = {
    "unseen": "?",
    "empty": ".",
    "wall": "#",
    "floor": "_",
    "door": "D",
    "key": "K",
    "ball": "A",
    "box": "B",
    "goal": "G",
    "lava": "V",
    "you": "@",
}


def shown(env: Any, observation: Any) -> str:
    """An observation as a model reads it: MiniGrid's view, a drawing in characters, or numbers.

    Raises:
        UsageError: It is a picture.
    """
    if isinstance(observation, Mapping) and {"mission", "image", "direction"} <= set(observation):
        return _minigrid(observation)
    text = _plain(observation)
    if env.render_mode != "ansi":
        return f"Observation: {text}"
    return f"{drawn(env.render())}\nObservation: {text}"


def drawn(text: str) -> str:
    """A drawing for terminals without its colours; what is coloured stands in brackets.

    Its colour is named where there is more than one, since it then means something.
    """
    codes = {match["code"] for match in _COLOURED.finditer(text)}

    def bracketed(match: re.Match[str]) -> str:
        name = _COLOURS.get(int(match["code"]) % 10, match["code"])
        return f"[{match['text']}:{name}]" if len(codes) > 1 else f"[{match['text']}]"

    return _CONTROL.sub("", _COLOURED.sub(bracketed, text)).strip("\n")


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(_plain(part) for part in value)})"
    if getattr(value, "size", 1) > MAX_NUMBERS:
        raise UsageError(
            f"The environment shows an array of shape {value.shape}, which is no text. Wrap it, or "
            "show it yourself: Gymnasium(ID, show=function of environment and observation)."
        )
    if hasattr(value, "tolist"):
        value = value.tolist()
    return _rounded(value)


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rounded, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _minigrid(observation: Mapping[str, Any]) -> str:
    """The mission and what the agent sees: it looks up from the middle of the lowest row."""
    constants: Any = import_module("minigrid.core.constants")
    image = observation["image"]
    states = {0: "open", 1: "closed", 2: "locked"}
    rows: list[str] = []
    seen: list[str] = []
    width, height = image.shape[:2]
    for y in range(height):
        signs: list[str] = []
        for x in range(width):
            kind, colour, state = (int(number) for number in image[x, y])
            name = constants.IDX_TO_OBJECT[kind]
            signs.append("@" if (x, y) == (width // 2, height - 1) else _GRID.get(name, "@"))
            if name in ("unseen", "empty", "wall", "floor"):
                continue
            words = [states[state]] if name == "door" else []
            if name not in ("goal", "lava"):
                words.append(constants.IDX_TO_COLOR[colour])
            seen.append(f"{' '.join([*words, name])} {_where(x - width // 2, height - 1 - y)}")
        rows.append("".join(signs))
    heading = ("east", "south", "west", "north")[int(observation["direction"])]
    legend = ", ".join(f"{sign} {name}" for name, sign in _GRID.items() if sign in "".join(rows))
    return "\n".join(
        [
            f"Mission: {observation['mission']}",
            f"You face {heading}. Your view, looking up ({legend}):",
            *rows,
            f"You see: {', '.join(seen) or 'nothing'}.",
        ]
    )


def _where(right: int, ahead: int) -> str:
    if (right, ahead) == (0, 0):
        return "with you"
    side = f"{abs(right)} to the {'right' if right > 0 else 'left'}" if right else ""
    return " and ".join(part for part in (f"{ahead} ahead" if ahead else "", side) if part)
