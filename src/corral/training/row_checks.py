"""What a row of data must have to be played: checked before anything is, and told by its number."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from corral.chat.messages import messages_of
from corral.env import EnvironmentKind
from corral.errors import UsageError
from corral.training.picture_table import COLUMNS, PictureTable

logger = logging.getLogger(__name__)

Kinds = Mapping[str | None, EnvironmentKind]
"""Environments by the name in the column ``environment``; under None the one of every row."""

_LIKELY_PROMPTS = (
    *("question", "problem", "instruction", "query", "prompts", "messages", "conversations"),
    "input",
)
"""Columns that hold prompts in data made for other purposes."""


def check_rows(rows: Sequence[Any], kinds: Kinds, *, name: str = "train_dataset") -> None:
    """Check that each row says what to play; see :class:`RowCheck`."""
    hidden: list[str] = []
    if isinstance(rows, PictureTable):
        hidden = [column for column in COLUMNS if column in rows.table.features]
        rows = rows.without_columns()
    check = RowCheck(kinds, name=name, has_prompts=any(map(_has_prompt, rows)), hidden=hidden)
    for index, row in enumerate(rows):
        check(row, index)
    likely = _likely_prompt(rows[0]) if rows else None
    if kinds and likely and not check.has_prompts:
        logger.warning(
            "No row of %s has a `prompt`, so conversations begin with what reset() returns; `%s` "
            "goes to reset() as an argument. Rename the column if it is the prompt.",
            *(name, likely),
        )


class RowCheck:
    """Checks rows as they come."""

    def __init__(
        self,
        kinds: Kinds,
        *,
        name: str,
        has_prompts: bool,
        hidden: Sequence[str] = (),
    ) -> None:
        """
        Args:
            kinds: Empty where there is no environment.
            name: What the data set is called in errors.
            has_prompts: Whether any row has a prompt. If none has, environments bring them.
            hidden: Columns that rows have beside those that are shown here.
        """
        self.has_prompts = has_prompts
        self._kinds = kinds
        self._name = name
        self._hidden = hidden
        self._fitting: set[tuple[str | None, frozenset[str]]] = set()

    @classmethod
    def of_stream(cls, first: Any, kinds: Kinds) -> "RowCheck":
        """For rows that are like the first one."""
        return cls(kinds, name="train_dataset", has_prompts=_has_prompt(first))

    def __call__(self, row: Any, index: int) -> None:
        """Check one row.

        Raises:
            UsageError: It is no mapping, has a prompt that is no conversation or says nothing, or
                none where no environment could bring one, names an environment that is not there,
                or has columns that its ``reset`` does not take, or lacks one.
        """
        place = f"{self._name}[{index}]"
        if not isinstance(row, Mapping):
            raise UsageError(f"{place} is {row!r:.60}: each row must be a mapping of columns.")
        self._check_prompt(row, place)
        self._check_columns(row, place)

    def _check_prompt(self, row: Mapping[str, Any], place: str) -> None:
        prompt = row.get("prompt")
        if not self._kinds and "prompt" not in row:
            raise UsageError(
                f"{place} has no `prompt` (its columns: {', '.join(map(str, row)) or 'none'}), and "
                f"there is no environment that could bring one. {_how_to_add_prompts(row)}"
            )
        # Of several environments, one may bring its own prompts.
        if None in self._kinds and self.has_prompts and "prompt" not in row:
            raise UsageError(
                f"{place} has no `prompt`, which other rows have. {_how_to_add_prompts(row)}"
            )
        is_missing = prompt is None and "prompt" in row and (self.has_prompts or not self._kinds)
        if is_missing or (isinstance(prompt, str | list | tuple) and not prompt):
            where = 'reset() brings the task, [{"role": "user", "content": ""}]'
            rest = f"; where {where}" if self._kinds else ""
            raise UsageError(f"{place}: prompt is {prompt!r}. Give text or messages{rest}.")
        try:
            messages_of(prompt)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None

    def _check_columns(self, row: Mapping[str, Any], place: str) -> None:
        if not self._kinds:
            return
        columns = [*row, *self._hidden]
        name = None
        if None not in self._kinds:
            name = row.get("environment")
            if name not in self._kinds:
                raise UsageError(
                    f"{place} has environment={name!r}, which is not among the environments: "
                    f"{', '.join(sorted(map(repr, self._kinds)))}."
                )
            columns.remove("environment")
        known = (name, frozenset(columns))
        if known in self._fitting:
            return
        try:
            self._kinds[name].check_columns(columns)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None
        self._fitting.add(known)


def _has_prompt(row: Any) -> bool:
    return isinstance(row, Mapping) and row.get("prompt") is not None


def _likely_prompt(row: Mapping[str, Any]) -> str | None:
    return next((column for column in _LIKELY_PROMPTS if column in row), None)


def _how_to_add_prompts(row: Mapping[str, Any]) -> str:
    likely = _likely_prompt(row)
    if likely is None:
        return "Add the column."
    return (
        f'If `{likely}` is it, rename it: [{{**row, "prompt": row[{likely!r}]}} for row in rows].'
    )
