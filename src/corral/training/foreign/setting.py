"""One setting of another library, and what Corral does when it is given."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from corral.errors import UsageError


class Reading(StrEnum):
    """What a value that is not harmless leads to."""

    REFUSED = "refused"
    """An error: the run would not be the one that was asked for."""
    NOTED = "noted"
    """One line of warning: the setting changes no result, and acts on something that Corral does
    not have."""
    KEPT = "kept"
    """Nothing: no trainer reads it, in the reference neither; scripts do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSetting:
    """A setting without a field of its own."""

    default: Any
    """The reference's default: what reading the setting gives when it was not given."""
    reason: str
    """Why there is no such setting: a clause that follows a colon."""
    instead: str = ""
    """What to do: a sentence. Needed where a value can be refused."""
    harmless: tuple[Any, ...] = ()
    """Values besides the default that ask for what Corral does anyway."""
    reading: Reading = Reading.REFUSED

    def is_harmless(self, value: Any) -> bool:
        """Whether a value asks for nothing that Corral does not do."""
        return self.reading is Reading.KEPT or any(
            type(value) is type(known) and value == known
            for known in (self.default, *self.harmless)
        )

    def refuse(self, name: str, value: Any) -> None:
        """Raise for a value that cannot be accepted.

        Raises:
            UsageError: With the value, the reason and the nearest alternative.
        """
        if self.reading is Reading.REFUSED and not self.is_harmless(value):
            raise UsageError(f"{name}={value!r:.80} is refused: {self.reason}. {self.instead}")

    def note(self, name: str, value: Any) -> str | None:
        """What to say about an accepted value that has no effect; None: nothing."""
        if self.reading is not Reading.NOTED or self.is_harmless(value):
            return None
        return f"{name}={value!r:.80}: {self.reason}"
