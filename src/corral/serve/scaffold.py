"""``corral init``: a new environment as a package that serves and passes its tests at once."""

import keyword
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from corral.errors import UsageError

SUFFIX = ".jinja"
LONGEST_NAME = 24
"""So that no generated line gets too long."""
_PLACES = {"package": "{name}", "gitignore": ".gitignore", "dockerignore": ".dockerignore"}
"""What is called otherwise in the template; a real ``.gitignore`` there would be obeyed."""
_TAKEN = frozenset({"corral", "tests", "server"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffolded:
    """A new package."""

    folder: Path
    name: str
    files: tuple[str, ...]
    """Relative to ``folder``, in order."""
    serve_command: str
    test_command: str


def scaffold(name: str, *, parent: Path) -> Scaffolded:
    """Write the package ``name`` into the new folder ``parent/name``.

    Raises:
        UsageError: The name is no name for a package, or there is something in the folder.
    """
    check_name(name)
    folder = parent / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} exists and is not an empty folder. Choose another name, or remove it."
        )
    texts = dict(rendered(name))
    for place, text in texts.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Scaffolded(
        folder=folder,
        name=name,
        files=tuple(sorted(texts)),
        serve_command=f"corral serve {name}.environment:{class_name(name)}",
        test_command="python -m unittest",
    )


def rendered(name: str) -> Iterator[tuple[str, str]]:
    """``(path, text)`` of every file of the package ``name``."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    values = {"name": name, "class_name": class_name(name), "title": title(name)}
    for place, template in _walk(files("corral.serve") / "template", PurePosixPath()):
        renamed = [_PLACES.get(part, part).format(name=name) for part in place.parts]
        text = environment.from_string(template.read_text(encoding="utf-8")).render(values)
        yield "/".join(renamed), text


def check_name(name: str) -> None:
    """Check that ``name`` can be a package, in snake_case.

    Raises:
        UsageError: It cannot; the message has a name that can.
    """
    if _is_taken(name):
        problem = "already means something else in Python"
    elif len(name) > LONGEST_NAME:
        problem = f"has {len(name)} characters, and {LONGEST_NAME} are allowed"
    elif not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        problem = "is not in snake_case"
    else:
        return
    raise UsageError(f"The name {name!r} {problem}. Try: corral init {suggested(name)}")


def suggested(name: str) -> str:
    """The nearest name that can be a package."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    snake = re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")[:LONGEST_NAME].rstrip("_")
    if not snake:
        return "my_env"
    if not snake[0].isalpha():
        return suggested(f"env_{snake}")
    return f"{snake}_env" if _is_taken(snake) else snake


def class_name(name: str) -> str:
    """``treasure_hunt`` as the name of a class: ``TreasureHunt``."""
    return "".join(part.capitalize() for part in name.split("_"))


def title(name: str) -> str:
    """``treasure_hunt`` for people: ``Treasure hunt``."""
    return name.replace("_", " ").capitalize()


def _is_taken(name: str) -> bool:
    return keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _TAKEN


def _walk(folder: Traversable, place: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry, place / entry.name)
        elif entry.name.endswith(SUFFIX):
            yield place / entry.name.removesuffix(SUFFIX), entry
