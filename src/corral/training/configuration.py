"""What the configurations of all trainers have in common: how they read what they are given.

A setting is a field, another name of a field, or a setting of TRL that Corral has not (then its
table says what a value leads to). Anything else is a mistake, told with the nearest name.
"""

import difflib
import json
import logging
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from corral.errors import UsageError
from corral.training.command_line import NotGiven, fields_annotated, offer_options
from corral.training.foreign import ForeignSetting
from corral.training.setting_errors import explained

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _Kind(type(BaseModel)):
        """The constructor raises :class:`UsageError`; parsers of dataclasses can read the class.

        Not through ``__init__``: a configuration within a recipe is validated without it, so that
        the recipe's reader can say where each wrong value comes from.
        """

        def __new__(mcs, name: str, bases: tuple[type, ...], *args: Any, **kwargs: Any) -> Any:
            with fields_annotated(bases):
                cls = super().__new__(mcs, name, bases, *args, **kwargs)
            offer_options(cls)
            return cls

        def __setattr__(cls, name: str, value: Any) -> None:
            if name == "__dataclass_params__":
                raise UsageError(
                    f"{cls.__name__}: leave @dataclass out. A configuration is one already as far "
                    "as parsers go, and reads dataclasses.field(...) as it is."
                )
            super().__setattr__(name, value)

        def __call__(cls, output_dir: Any = None, /, **settings: Any) -> Any:
            if output_dir is not None:
                settings["output_dir"] = output_dir
            try:
                return super().__call__(**settings)
            except ValidationError as error:
                raise UsageError(explained(error, cls.__name__)) from None

    class _Base(BaseModel, metaclass=_Kind):
        pass


class Configuration(_Base):
    """Reads settings; see the module."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}
    """Field by another name that it may be given, and read, under."""
    FOREIGN: ClassVar[Mapping[str, ForeignSetting]] = {}
    """Settings that have no field."""

    _foreign: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])
    """Accepted settings without a field, as they were given."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, Mapping):
            return handler(given)
        settings = {
            name: _plain(value) for name, value in given.items() if not isinstance(value, NotGiven)
        }
        settings = cls._under_their_own_names(settings)
        foreign = {name: settings.pop(name) for name in list(settings) if name in cls.FOREIGN}
        for name, value in foreign.items():
            cls.FOREIGN[name].refuse(name, value)
        for name in settings:
            if name not in cls.model_fields:
                raise UsageError(cls._unknown(name))
        notes = [cls.FOREIGN[name].note(name, value) for name, value in foreign.items()]
        if any(notes):
            logger.warning("Without effect: %s.", "; ".join(note for note in notes if note))
        made = handler(settings)
        made._foreign = {
            name: value for name, value in foreign.items() if value != cls.FOREIGN[name].default
        }
        return made

    @classmethod
    def _under_their_own_names(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings by field name.

        Raises:
            UsageError: One is given under two names, with two values.
        """
        read: dict[str, str] = {}
        for name in settings:
            field = cls.OTHER_NAMES.get(name, name)
            if field in read and settings[read[field]] == settings[name]:
                continue
            if field in read:
                raise UsageError(f"{read[field]} and {name} are one setting: give one of them.")
            read[field] = name
        return {field: settings[name] for field, name in read.items()}

    @classmethod
    def _unknown(cls, name: str) -> str:
        known = [*cls.model_fields, *cls.OTHER_NAMES, *cls.FOREIGN]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        remedy = (
            f"Did you mean {near[0]}?" if near else "See the fields of the class for what there is."
        )
        return f"there is no setting {name!r}. {remedy}"

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            own = self.OTHER_NAMES.get(name, name)
            if own in self.FOREIGN:
                self.FOREIGN[own].refuse(name, value)
                self._foreign[own] = value
                return
            if own not in type(self).model_fields and not own.startswith("_"):
                raise UsageError(f"{type(self).__name__}: {self._unknown(name)}")
            try:
                super().__setattr__(own, _plain(value))
            except ValidationError as error:
                raise UsageError(explained(error, type(self).__name__)) from None

        def __getattr__(self, name: str) -> Any:
            """Settings under another name, and those without a field: callbacks read them."""
            if name in type(self).OTHER_NAMES:
                return getattr(self, type(self).OTHER_NAMES[name])
            if name in type(self).FOREIGN:
                return self._foreign.get(name, type(self).FOREIGN[name].default)
            return super().__getattr__(name)

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain data, tokens masked; what trackers record of a run."""
        data = self.model_dump(mode="json") | self._foreign
        return {
            name: f"<{name.upper()}>" if name.endswith("_token") and value else value
            for name, value in data.items()
        }

    def to_json_string(self) -> str:
        """All settings as JSON text."""
        return json.dumps(self.to_dict(), indent=2, default=str)

    def to_sanitized_dict(self) -> dict[str, Any]:
        """All settings as numbers, texts and truth values, which is all that some trackers take."""
        plain = (bool, int, float, str)
        return {
            name: value if isinstance(value, plain) else str(value)
            for name, value in self.to_dict().items()
        }


def read_json_object(value: Any) -> Any:
    """What JSON text stands for, {} for None, and anything else as it is."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise UsageError(f"{value!r:.80} is not JSON: {error}") from error


JsonObject = Annotated[dict[str, Any], BeforeValidator(read_json_object)]
"""A mapping, also given as JSON text (as command lines do) or as None (then it is empty)."""


def _plain(value: Any) -> Any:
    """The value of an enum's member: transformers has enums for what is text here."""
    return value.value if isinstance(value, Enum) else value
