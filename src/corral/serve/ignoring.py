"""Which files of a folder belong to it: ``.gitignore`` rules, and what is never part of a project.

The rules are git's: the last one that matches decides, ``!`` takes back, a slash at the end means
folders, a slash elsewhere ties the rule to its folder, and what is inside an ignored folder stays
ignored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NEVER_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", ".tox", ".nox"}
    | {".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis", ".ipynb_checkpoints"}
)
NEVER_FILES = frozenset({".DS_Store", "Thumbs.db"})
NEVER_SUFFIXES = (".pyc", ".pyo", ".egg-info")


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a folder, and why it does not belong to the project (empty if it does)."""

    place: str
    """Relative, with slashes; a folder's ends in one."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool
    base: str
    """The folder of the file that has the rule: empty, or with a slash at its end."""
    line: str


def walk(folder: Path) -> Iterator[Found]:
    """Every file below ``folder``, and every folder that is left out, in order."""
    yield from _walk(folder, "", ())


def _walk(folder: Path, base: str, inherited: tuple[_Rule, ...]) -> Iterator[Found]:
    rules = (*inherited, *_read_rules(folder / ".gitignore", base))
    for entry in sorted(folder.iterdir()):
        is_folder = entry.is_dir() and not entry.is_symlink()
        place = f"{base}{entry.name}{'/' if is_folder else ''}"
        reason = _why_never(entry) or _why_ignored(place, rules)
        if reason or not is_folder:
            yield Found(place, reason)
        else:
            yield from _walk(entry, place, rules)


def _why_never(entry: Path) -> str:
    if entry.is_symlink():
        return "a link: it may lead out of the folder"
    if entry.is_dir():
        if (entry / "pyvenv.cfg").is_file():
            return "a virtual environment"
        is_never = entry.name in NEVER_FOLDERS
    elif not entry.is_file():
        return "not a file"
    else:
        is_never = entry.name in NEVER_FILES
    return "made by tools" if is_never or entry.name.endswith(NEVER_SUFFIXES) else ""


def _why_ignored(place: str, rules: Sequence[_Rule]) -> str:
    is_folder = place.endswith("/")
    for rule in reversed(rules):
        inside = place.removeprefix(rule.base).removesuffix("/")
        if (is_folder or not rule.is_for_folders) and rule.pattern.fullmatch(inside):
            return "" if rule.is_negated else f"{rule.base}.gitignore: {rule.line}"
    return ""


def _read_rules(file: Path, base: str) -> Iterator[_Rule]:
    if not file.is_file() or file.is_symlink():
        return
    for raw in file.read_text(encoding="utf-8", errors="replace").splitlines():
        line = re.sub(r"(?<!\\) +$", "", raw)
        if not line or line.startswith("#"):
            continue
        is_negated = line.startswith("!")
        body = line[1:] if is_negated else line
        is_for_folders = body.endswith("/")
        yield _Rule(_pattern(body.rstrip("/")), is_negated, is_for_folders, base=base, line=line)


def _pattern(glob: str) -> re.Pattern[str]:
    """A rule's glob as a pattern for paths relative to its folder."""
    prefix = "" if "/" in glob else "(?:.*/)?"
    return re.compile(prefix + "".join(_parts(glob.removeprefix("/"))), re.DOTALL)


def _parts(glob: str) -> Iterator[str]:
    tokens = re.findall(
        r"^\*\*/|/\*\*$|/\*\*(?=/)|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\.|.", glob, re.DOTALL
    )
    for token in tokens:
        match token[0]:
            case "*" if token == "**/":
                yield "(?:.*/)?"
            case "/" if token == "/**":
                yield "(?:/.*)?" if not glob.endswith("/**") else "/.*"
            case "*":
                yield "[^/]*"
            case "?":
                yield "[^/]"
            case "[" if len(token) > 2:
                inside = token[1:-1].replace("\\", "\\\\")
                yield f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            case "\\" if len(token) > 1:
                yield re.escape(token[1])
            case _:
                yield re.escape(token)
