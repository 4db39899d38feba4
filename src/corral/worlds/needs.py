"""What a world stands on that Corral does not bring."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from corral.errors import UsageError


def _no_problem() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Packages that may clash with others, and what of the system they need.

    A world whose modules can be imported runs in this process. One whose modules cannot runs as a
    served process in a virtual environment of its own, which ``corral install`` makes.
    """

    requirements: tuple[str, ...]
    """For pip, pinned. They must go together with Corral's own, and with nothing else."""
    modules: tuple[str, ...]
    """Top-level modules that can be imported where they are installed."""
    size_mb: int
    """About how large the virtual environment becomes; told before it is made."""
    python: tuple[int, int] | None = None
    """The oldest Python that will do, where Corral's own oldest will not."""
    newest_python: tuple[int, int] | None = None
    """The newest Python that will do, where a package is not built for later ones."""
    shared_as: str | None = None
    """What the virtual environment is called where several worlds share it; by default as the
    world."""
    max_sessions: int = 64
    """Environments that a server of it bears at a time; further ones wait."""
    system_problem: Callable[[], str | None] = _no_problem
    """Looks at the system: what is missing and how to get it, or None."""

    def __post_init__(self) -> None:
        if not self.requirements or not self.modules:
            raise UsageError(
                f"requirements={self.requirements!r}, modules={self.modules!r}: name what is "
                "installed and what can then be imported."
            )
        dotted = [name for name in self.modules if "." in name]
        if dotted:  # looking for those would import what they are in
            raise UsageError(f"modules has {dotted[0]!r}: name its top-level package.")

    def are_met(self) -> bool:
        """Whether the modules can be imported in this interpreter; none is."""
        return all(find_spec(name) is not None for name in self.modules)
