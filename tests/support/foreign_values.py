"""Values of settings that Corral has not."""

from typing import Any

from corral.training.foreign import ForeignSetting


def other_than(setting: ForeignSetting) -> Any:
    """A value that asks for something else than what is done."""
    return next(v for v in (True, False, "other", 7) if not setting.is_harmless(v))
