"""Makes the virtual environment of a world, whole or not at all, and takes it away."""

import contextlib
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from corral.errors import InfrastructureFault, UsageError
from corral.hosting.interpreters import find_python
from corral.hosting.places import (
    Installed,
    Note,
    all_requirements,
    draft_of,
    drafts_of,
    installed_at,
    installed_worlds,
    locked,
    place_of,
    python_in,
    size_of,
    write_note,
)
from corral.processes import Job, supervisor_command
from corral.worlds import Family, World, find_installable
from corral.worlds.needs import Needs

_TAIL_LINES = 20
_MISSING = """
import sys
from importlib.util import find_spec
print(*[name for name in sys.argv[1:] if find_spec(name) is None])
"""

Tell = Callable[[str], None]
"""Is told each line that the programs at work write."""


class InstallError(InfrastructureFault, RuntimeError):
    """A virtual environment could not be made; nothing of it is left."""


def install(world: World | Family | str, *, tell: Tell = lambda _: None) -> Installed:
    """Make the virtual environment of a world, unless it is there.

    Of several processes that want it at the same time one makes it, and the others wait. One that
    is interrupted leaves nothing that counts, and the next one begins anew.

    Args:
        world: A world that declares `Needs`, a family of such worlds, or what names one of them.

    Raises:
        UsageError: It needs no environment, or another Python than there is.
        InstallError: The packages could not be installed; the message ends with what pip wrote.
    """
    found = find_installable(world) if isinstance(world, str) else world
    needs = found.needs
    if needs is None:
        raise UsageError(f"{found.name} needs nothing installed: it runs wherever Corral does.")
    folder = place_of(found.home, needs)
    with locked(found.home):
        _clear_drafts(found.home)
        installed = installed_at(folder)
        if installed is not None:
            return installed
        python = find_python(needs.python, needs.newest_python, needed_by=found.home)
        draft = draft_of(folder)
        try:
            _build(found.home, needs, draft, python, tell)
            _move(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    installed = installed_at(folder)
    assert installed is not None
    return installed


def remove(name: str) -> list[Installed]:
    """Delete a world's environments, those of other versions among them; returns what was there."""
    with locked(name):
        _clear_drafts(name)
        found = [one for one in installed_worlds() if one.note.world == name]
        for one in found:
            # Renamed first: half of an environment must not look like one.
            one.folder.rename(draft_of(one.folder))
        _clear_drafts(name)
    return found


def _clear_drafts(name: str) -> None:
    for draft in drafts_of(name):
        shutil.rmtree(draft)


def _build(name: str, needs: Needs, draft: Path, python: str, tell: Tell) -> None:
    _run([python, "-m", "venv", str(draft)], f"Making a virtual environment for {name}", tell)
    own = str(python_in(draft))
    # Compiled when first imported, which most of it never is.
    pip = [own, "-m", "pip", "install", "--no-input", "--no-compile", "--disable-pip-version-check"]
    _run([*pip, *all_requirements(needs)], f"Installing what {name} needs", tell)
    missing = _run([own, "-c", _MISSING, *needs.modules], f"Looking at what {name} got", tell)
    if missing.strip():
        raise InstallError(
            f"What {name} needs was installed, but there is no module {missing.strip()!r} in it. "
            f"It declares the requirements {', '.join(needs.requirements)}."
        )
    note = Note(
        world=name,
        requirements=needs.requirements,
        python=_run([own, "-c", "import platform; print(platform.python_version())"], "", tell),
        size_bytes=size_of(draft),
    )
    write_note(draft, note)


def _move(draft: Path, folder: Path) -> None:
    """Give a finished draft its name, also in the programs in it, which name their interpreter."""
    for program in (draft / "bin").iterdir():
        if program.is_symlink() or not program.is_file():
            continue
        with contextlib.suppress(UnicodeDecodeError):  # a binary one names none
            text = program.read_text(encoding="utf-8")
            program.write_text(text.replace(str(draft), str(folder)), encoding="utf-8")
    draft.rename(folder)


def _run(command: Sequence[str], what: str, tell: Tell) -> str:
    """Run a program that ends with this process, whatever happens to it; returns what it wrote."""
    process = subprocess.Popen(
        supervisor_command(Job(command=command)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is for us; we then close the pipe
    )
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line.rstrip())
            tell(tail[-1])
    written = "\n".join(tail)
    if process.returncode != 0:
        raise InstallError(f"{what} failed. It wrote:\n{written}")
    return written
