"""Where the virtual environments of worlds are, and what is known of each."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from corral.errors import UsageError
from corral.hosting.own_source import own_dependencies, own_requirement
from corral.worlds.needs import Needs

HOME_VARIABLE = "CORRAL_HOME"
_NOTE = "corral-world.json"
_DRAFT = ".draft-"
_HASH_LETTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is written into a finished environment."""

    world: str
    requirements: tuple[str, ...]
    python: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A finished virtual environment."""

    folder: Path
    note: Note

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(python_in(self.folder))


def python_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "bin" / "python"


def worlds_folder() -> Path:
    """The folder of all of them: ``worlds`` in ``CORRAL_HOME``, by default ``~/.cache/corral``."""
    home = os.environ.get(HOME_VARIABLE)
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "corral") / "worlds"


def all_requirements(needs: Needs) -> tuple[str, ...]:
    """What is installed for a world: its own packages and the running Corral."""
    return (*needs.requirements, *own_requirement())


def place_of(name: str, needs: Needs) -> Path:
    """The folder for a world's environment; other requirements or Corrals have others."""
    content = json.dumps(
        [all_requirements(needs), own_dependencies(), needs.python, needs.newest_python]
    )
    digest = sha256(content.encode()).hexdigest()[:_HASH_LETTERS]
    return worlds_folder() / f"{_file_name(name)}-{digest}"


def installed_at(folder: Path) -> Installed | None:
    """The environment in a folder; None if there is none, or none that is whole."""
    try:
        told = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        note = Note(**{**told, "requirements": tuple(told["requirements"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Installed(folder=folder, note=note)


def installed_worlds() -> list[Installed]:
    """All that are whole, those that nothing asks for any more among them."""
    folders = sorted(worlds_folder().glob("[!.]*"))
    return [found for folder in folders if (found := installed_at(folder)) is not None]


def write_note(folder: Path, note: Note) -> None:
    """Say what a folder holds; done last."""
    (folder / _NOTE).write_text(json.dumps(asdict(note), indent=1), encoding="utf-8")


def draft_of(folder: Path) -> Path:
    """Where a folder is built, or taken apart, before it has its name, or when it had it."""
    return folder.with_name(_DRAFT + folder.name)


def drafts_of(name: str) -> list[Path]:
    """What interrupted installs of a world have left."""
    return list(worlds_folder().glob(f"{_DRAFT}{_file_name(name)}-{'?' * _HASH_LETTERS}"))


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Held while a world's folders change. It goes with its holder, however that ends."""
    folder = worlds_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f".{_file_name(name)}.lock").open("w")
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}. Set {HOME_VARIABLE} to a folder that "
            "can."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(
        (Path(root) / name).lstat().st_size for root, _, names in os.walk(folder) for name in names
    )


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-.") or "world"
