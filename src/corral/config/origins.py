"""The origins that a dumped configuration was written with."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from corral.config.resolved import RECIPE, Model, Resolved

_HEADER = re.compile(r"\[(?P<name>[^\[\]]+)\]")
_VALUE = re.compile(r"(?P<key>[A-Za-z0-9_-]+) = .*\s{2,}# (?P<origin>\S+)")


def written_origins(text: str) -> dict[str, str]:
    """Origins by dotted name, from the comments that ``dump`` writes.

    Elements of lists of tables are left out.
    """
    origins: dict[str, str] = {}
    section: str | None = ""
    for line in text.splitlines():
        if line.startswith("["):
            header = _HEADER.fullmatch(line)
            section = f"{header['name']}." if header is not None else None
        elif section is not None and (value := _VALUE.fullmatch(line)) is not None:
            origins[section + value["key"]] = value["origin"]
    return origins


def with_written_origins(resolved: Resolved[Model], path: Path) -> Resolved[Model]:
    """The configuration that was loaded from a dump, with the origins that the dump names."""
    written: Mapping[str, str] = written_origins(path.read_text(encoding="utf-8"))
    origins = {
        name: written.get(name, origin) if origin == RECIPE else origin
        for name, origin in resolved.origins.items()
    }
    return replace(resolved, origins=origins)
