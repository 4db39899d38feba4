"""Actions to JSON and JSON to observations, for the types that people describe them with."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from corral.errors import UsageError

ENVELOPE = ("reward", "done")
"""Fields of OpenEnv's observation models that travel beside the observation."""


def action_payload(action: Any, action_type: type | None = None) -> dict[str, Any]:
    """What a ``step`` frame carries for ``action``: a mapping, dataclass or pydantic model.

    Raises:
        UsageError: It is something else, or not of ``action_type``.
    """
    if action_type is not None and not isinstance(action, action_type | Mapping):
        raise UsageError(
            f"step() got {type(action).__name__} {str(action)[:80]!r}. Give a "
            f"{action_type.__name__}, or a dict of its fields."
        )
    if isinstance(action, Mapping):
        return dict(cast("Mapping[str, Any]", action))
    if hasattr(action, "model_dump"):
        fields = cast("Any", action).model_dump(mode="json")
        if not fields.get("metadata"):
            fields.pop("metadata", None)  # strict servers know no such field
        return fields
    if dataclasses.is_dataclass(action) and not isinstance(action, type):
        return dataclasses.asdict(action)
    raise UsageError(
        f"step() got {type(action).__name__} {str(action)[:80]!r}. Give a dict, a dataclass or a "
        "pydantic model with the action's fields."
    )


def typed(kind: Any, fields: Mapping[str, Any], **envelope: Any) -> Any:
    """An object of ``kind`` from a JSON object; ``envelope`` fields are added where it has them.

    Raises:
        UsageError: ``kind`` is neither a pydantic model nor a dataclass.
    """
    if hasattr(kind, "model_validate"):
        wanted = {name: envelope[name] for name in envelope if name in kind.model_fields}
        return kind.model_validate({**fields, **wanted})
    if dataclasses.is_dataclass(kind):
        known = {field.name for field in dataclasses.fields(kind) if field.init}
        given = {**fields, **envelope}
        return cast("Any", kind)(**{name: given[name] for name in given if name in known})
    raise UsageError(f"{kind!r} is neither a pydantic model nor a dataclass.")
