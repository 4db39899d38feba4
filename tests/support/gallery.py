"""An environment that shows pictures, at the start and when it is asked for more."""

from typing import Any

import numpy as np
from PIL import Image


def picture(seed: int, *, width: int = 0, height: int = 0) -> Image.Image:
    """A random picture; its size follows from the seed if none is given."""
    random = np.random.default_rng(seed)
    width, height = width or 16 + 8 * (seed % 4), height or 16 + 8 * (seed % 3)
    return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))


class Gallery:
    """Shows one picture, and another for each call of ``look``."""

    def reset(self, seed: int = 0, **row: Any) -> list[dict[str, Any]]:
        self.looked = 0
        return [
            {"type": "image", "image": picture(seed)},
            {"type": "text", "text": "What else is there?"},
        ]

    def look(self, room: int) -> list[dict[str, Any]]:
        """Look into a room.

        Args:
            room: Its number.
        """
        self.looked += 1
        return [
            {"type": "text", "text": f"Room {room}:"},
            {"type": "image", "image": picture(100 + room)},
        ]

    def get_reward(self) -> float:
        return float(self.looked)
