"""Find the class a user names: ``module:Class`` or ``path/to/file.py:Class``."""

import inspect
import sys
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from corral.errors import UsageError

_FORMS = "Write module:Class or path/to/file.py:Class"


def resolve(
    spec: str, *, also: type | tuple[type, ...] = (), what: Literal["class", "function"] = "class"
) -> Any:
    """The class, or other callable, that ``spec`` names.

    The named module is imported, and thereby run. Its folder (the current one for a module name)
    joins the end of ``sys.path``, so that it can import its neighbours.

    Args:
        also: Types whose instances are fine although they cannot be called.
        what: What the user was asked for; errors speak of it.

    Raises:
        UsageError: Nothing of that name can be imported; the message says what is there.
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{spec!r} does not name an environment class. {_FORMS}")
    module = _load_file(place) if place.endswith(".py") else _import(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found) or isinstance(found, also):
        return found
    problem = f"is not a {what}" if found is not None else "does not exist"
    there = _alternatives(module, place) if what == "class" else _functions(module, place)
    raise UsageError(f"{name!r} {problem} in {place}. {there}")


def _load_file(place: str) -> ModuleType:
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise UsageError(f"There is no file {place!r} (looked for {path}). {_FORMS}")
    # One module a file, under a name that pickling and string annotations find again.
    module_name = f"corral_file_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    file_spec = spec_from_file_location(module_name, path)
    if file_spec is None or file_spec.loader is None:
        raise UsageError(f"{place!r} cannot be read as Python. {_FORMS}")
    _let_import_from(path.parent)
    module = module_from_spec(file_spec)
    sys.modules[module_name] = module
    try:
        file_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise _import_failure(place, error) from error
    return module


def _import(place: str) -> ModuleType:
    _let_import_from(Path.cwd())
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not (place == error.name or place.startswith(error.name + ".")):
            raise _import_failure(place, error) from error
        raise UsageError(
            f"There is no module {place!r} to import. Check the spelling, install the package, or "
            "give the file: path/to/file.py:Class"
        ) from error
    except Exception as error:
        raise _import_failure(place, error) from error


def _import_failure(place: str, error: Exception) -> UsageError:
    return UsageError(f"Importing {place} failed with {type(error).__name__}: {error}")


def _let_import_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _alternatives(module: ModuleType, place: str) -> str:
    names = [
        f"{place}:{name}"
        for name, member in inspect.getmembers(module, inspect.isclass)
        if hasattr(member, "reset") and not name.startswith("_")
    ]
    if names:
        return f"It has: {', '.join(names)}"
    return "It has no class with a `reset` method."


def _functions(module: ModuleType, place: str) -> str:
    names = [
        f"{place}:{name}"
        for name, member in inspect.getmembers(module, inspect.isfunction)
        if member.__module__ == module.__name__ and not name.startswith("_")
    ]
    return f"It has: {', '.join(names)}" if names else "It has no functions."
