"""Finds Chromium, which no Python package brings."""

import os
import shutil

VARIABLE = "CORRAL_CHROMIUM"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The program that ``CORRAL_CHROMIUM`` names, else the first of the usual ones on ``PATH``."""
    named = os.environ.get(VARIABLE)
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def chromium_problem() -> str | None:
    """What to do where there is none; None where there is."""
    if find_chromium() is not None:
        return None
    named = os.environ.get(VARIABLE)
    if named:
        return f"{VARIABLE}={named!r} is no program that can be run."
    return (
        "It needs Chromium. Install it, such as with: apt-get install --no-install-recommends "
        f"chromium, or name the program in {VARIABLE}."
    )
