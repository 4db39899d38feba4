"""What the world of the gong stands on."""

import sys

from packaging import __version__ as packaging_version

__all__ = ["packaging_version", "strike"]


def strike(force: int, limit: int) -> str:
    """How the gong sounds."""
    return "boom" if force == limit else ("dull" if force < limit else "shrill")


def main() -> None:
    """Say which version of a much used package is installed here."""
    sys.stdout.write(f"{packaging_version}\n")
