"""The error vocabulary, and the one boundary that says whose fault a failure is.

::

    CorralError
    ├── UsageError (ValueError)        wrong use: bad option, bad class, bad data; fix and retry
    │   ├── WrongTypeError (TypeError) an argument is of another type than it may be
    │   ├── NotSupportedError (NotImplementedError) sensible, but not there for this combination
    │   ├── ToolDefinitionError        a tool cannot be described to a model
    │   ├── TemplateError              a chat template cannot be used for multi-turn training
    │   └── ImageError                 an image cannot be read, or by this model not at all
    ├── StorageError (OSError)         a file of a run cannot be written: full or read-only disk
    ├── MissingExtraError (ImportError) an optional dependency is not installed
    ├── EnvironmentFault               the user's environment code failed outside a tool call
    └── InfrastructureFault            something beneath the environment failed (socket, engine)

Users raise ordinary Python errors; inside a tool call every ``Exception`` is text for the model.
A fault is data about one episode and never ends a run by itself.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType


class CorralError(Exception):
    """Base of all errors Corral raises on purpose."""


class UsageError(CorralError, ValueError):
    """Wrong use; the message names the bad value and the remedy."""


class WrongTypeError(UsageError, TypeError):
    """An argument of a wrong type; the message says which types it may have."""


class NotSupportedError(UsageError, NotImplementedError):
    """Something sensible that there is no way to do yet; the message names what is near to it."""


class ToolDefinitionError(UsageError):
    """A method cannot become a tool; the message names the method."""


class TemplateError(UsageError):
    """A chat template cannot be extended turn by turn; the message shows where it differs."""


class ImageError(UsageError):
    """An image, or another medium, cannot be shown to the model; the message says why."""


class StorageError(CorralError, OSError):
    """A file cannot be written; the message names its path and the remedy."""


class MissingExtraError(CorralError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""


class EnvironmentFault(CorralError):
    """The user's environment code failed outside a tool call."""


class InfrastructureFault(CorralError):
    """Something beneath the environment failed; the episode may be retried."""


INFRASTRUCTURE_ERRORS: tuple[type[BaseException], ...] = (
    InfrastructureFault,
    ConnectionError,
    TimeoutError,
    EOFError,
)
"""What user code raises when the world beneath it, not the code, is at fault."""


@contextmanager
def environment_boundary(what: str) -> Iterator[None]:
    """Attribute whatever escapes user code: infrastructure, or the environment itself.

    Args:
        what: The step for the message, such as ``"GuessNumber.reset"``.
    """
    try:
        yield
    except (EnvironmentFault, InfrastructureFault):
        raise
    except INFRASTRUCTURE_ERRORS as error:
        raise InfrastructureFault(f"{what}: {type(error).__name__}: {text_of(error)}") from error
    except Exception as error:
        text = text_of(error)
        raise EnvironmentFault(f"{what} raised {type(error).__name__}: {text}") from error


@contextmanager
def storage_boundary(path: Path) -> Iterator[None]:
    """Say of a failure to write where it was, and what helps.

    Args:
        path: What is written: a file, or a folder with all below it.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(
            f"{path} cannot be written: {reason}. {_room_at(path)}Free some space, or give an "
            "output_dir that can be written."
        ) from error


def _room_at(path: Path) -> str:
    """How much is free on the disk of a path; nothing where that is not known."""
    try:
        place = next(each for each in (path, *path.absolute().parents) if each.exists())
        return f"{shutil.disk_usage(place).free / 1e9:.2f} GB are free there. "
    except (OSError, StopIteration):
        return ""


def text_of(error: BaseException) -> str:
    """What an exception of user code says, also where saying it fails."""
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001 - `__str__` is user code, too
        return f"(its text raised {type(other).__name__})"


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module!r} is not installed. Install it with: pip install 'corral[{extra}]'"
        ) from error
