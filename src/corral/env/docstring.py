"""Read a tool's docstring: what it does, what each argument means, what comes back.

Google style is the reference; NumPy and Sphinx styles are understood as far as argument
descriptions go. Anything else is one long description, and the caller then says which argument
lacks one.
"""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_ARGUMENT_SECTIONS = frozenset({"Args", "Arguments", "Parameters", "Params"})
_RETURN_SECTIONS = frozenset({"Returns", "Return"})
_END_OF_DESCRIPTION = _ARGUMENT_SECTIONS | _RETURN_SECTIONS | {"Raises", "Yields"}
_OTHER_SECTIONS = frozenset(
    {"Example", "Examples", "Note", "Notes", "Warning", "Warnings", "See Also", "References"}
)
_HEADER = re.compile(r"\s*(?P<name>[A-Z][A-Za-z ]*?):(?P<rest>.*)$")
_GOOGLE_ENTRY = re.compile(r"\s*\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?\s*:(?!:)\s*(?P<text>.*)$")
_SPHINX_FIELD = re.compile(r"\s*:(?P<kind>\w+)(?P<words>[^:]*):\s*(?P<text>.*)$")
_SPHINX_PARAMETER_KINDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_NUMPY_RULE = re.compile(r"\s*-{3,}\s*$")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolText:
    """What a docstring says about a function."""

    description: str
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    """Description by argument name, in one line each."""
    returns: str | None = None


def read_docstring(docstring: str) -> ToolText:
    """Split a docstring into description, argument descriptions and return description."""
    lines = inspect.cleandoc(docstring).splitlines()
    if any(_is_sphinx_parameter(line) for line in lines):
        return _read_sphinx(lines)
    if any(_NUMPY_RULE.match(line) for line in lines[1:]):
        return _read_numpy(lines)
    return _read_google(lines)


def _read_google(lines: Sequence[str]) -> ToolText:
    description: list[str] = []
    argument_lines: list[str] = []
    return_lines: list[str] = []
    taken: list[str] | None = description
    base = 0
    for line in lines:
        section = _section(line, base=base, in_description=taken is description)
        if section is not None:
            name, rest = section
            base = _indent(line)
            taken = None
            # Text beside a header is no part of what models were trained to see.
            if name in _ARGUMENT_SECTIONS and not argument_lines:
                taken = argument_lines
            elif name in _RETURN_SECTIONS and not return_lines and not rest.strip():
                taken = return_lines
        elif taken is not None:
            taken.append(line)
    return ToolText(
        description="\n".join(description).strip(),
        arguments=_google_arguments(argument_lines),
        returns="\n".join(return_lines).strip() or None,
    )


def _section(line: str, *, base: int, in_description: bool) -> tuple[str, str] | None:
    match = _HEADER.match(line)
    if match is None:
        return None
    name = match["name"]
    if in_description:
        # An example or a note before the arguments is part of what the model should read.
        starts = name in _END_OF_DESCRIPTION and (
            _indent(line) == 0 or (name in _ARGUMENT_SECTIONS and not match["rest"].strip())
        )
    else:
        starts = name in _END_OF_DESCRIPTION | _OTHER_SECTIONS and _indent(line) <= base
    return (name, match["rest"]) if starts else None


def _google_arguments(lines: Sequence[str]) -> dict[str, str]:
    arguments: dict[str, list[str]] = {}
    entry_indent: int | None = None
    current: list[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        indent = _indent(line)
        if entry_indent is None:
            entry_indent = indent
        if indent < entry_indent:
            break
        entry = _GOOGLE_ENTRY.match(line) if indent == entry_indent else None
        if entry is not None:
            current = arguments.setdefault(entry["name"], [])
            current.append(entry["text"])
        elif current is not None:
            current.append(line)
    return {name: _one_line(parts) for name, parts in arguments.items()}


def _read_sphinx(lines: Sequence[str]) -> ToolText:
    description: list[str] = []
    arguments: dict[str, list[str]] = {}
    returns: list[str] = []
    current: list[str] | None = description
    for line in lines:
        match = _SPHINX_FIELD.match(line)
        if match is None:
            if current is not None:
                current.append(line)
            continue
        words = match["words"].split()
        current = None
        if match["kind"] in _SPHINX_PARAMETER_KINDS and words:
            current = arguments.setdefault(words[-1].lstrip("*"), [])
        elif match["kind"] in ("return", "returns"):
            current = returns
        if current is not None:
            current.append(match["text"])
    return ToolText(
        description="\n".join(description).strip(),
        arguments={name: _one_line(parts) for name, parts in arguments.items()},
        returns=_one_line(returns) or None,
    )


def _is_sphinx_parameter(line: str) -> bool:
    match = _SPHINX_FIELD.match(line)
    return match is not None and match["kind"] in _SPHINX_PARAMETER_KINDS


def _read_numpy(lines: Sequence[str]) -> ToolText:
    sections: dict[str, list[str]] = {"": []}
    current = sections[""]
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.strip() and _NUMPY_RULE.match(following):
            current = sections.setdefault(line.strip(), [])
        elif not _NUMPY_RULE.match(line):
            current.append(line)
    return ToolText(
        description="\n".join(sections[""]).strip(),
        arguments=_numpy_arguments(sections.get("Parameters", [])),
        returns=_numpy_returns(sections.get("Returns", [])),
    )


def _numpy_arguments(lines: Sequence[str]) -> dict[str, str]:
    arguments: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        entry = _NUMPY_ENTRY.match(line) if _indent(line) == 0 else None
        if entry is not None:
            names = [name.strip() for name in entry["names"].split(",")]
            arguments |= dict.fromkeys(names, "")
        else:
            for name in names:
                arguments[name] = _one_line([arguments[name], line])
    return arguments


def _numpy_returns(lines: Sequence[str]) -> str | None:
    # The unindented lines name the type, which the hint already says.
    return _one_line([line for line in lines if _indent(line) > 0]) or None


def _one_line(parts: Sequence[str]) -> str:
    return " ".join(part.strip() for part in parts if part.strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
