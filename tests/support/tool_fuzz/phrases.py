"""Calls written the way one chat format wants them: whole ones, and forms with blanks to fill."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat import ChatFormat
from corral.chat.tokenizer import decode
from corral.errors import TemplateError
from corral.records import Finish, Message, ToolCall

_NAME, _KEY, _VALUE = "NAMEhole", "KEYhole", "VALUEhole"
_OTHER_KEY, _OTHER_VALUE = "OTHERhole", "SECONDhole"
_QUOTES = ('"', "'", '<|"|>', "<escape>", "")


@dataclass(frozen=True)
class Phrases:
    """How one format writes calls."""

    chat: ChatFormat
    before: str
    """What a turn begins with before its first call, such as the end of its reasoning."""
    single: str
    """A call with one argument and three holes."""
    form: str
    """A call with two arguments and five holes."""
    quote: str
    """What stands around a text."""

    @classmethod
    def of(cls, chat: ChatFormat) -> "Phrases":
        """Find out how ``chat`` writes calls."""
        holes = {_KEY: _VALUE, _OTHER_KEY: _OTHER_VALUE}
        turn = _rendered(chat, [ToolCall(name=_NAME, arguments=holes)])
        assert turn is not None
        number = _rendered(chat, [ToolCall(name=_NAME, arguments={**holes, _KEY: 7})])
        quote = next(q for q in _QUOTES if turn.replace(q + _VALUE + q, "7", 1) == number)
        single = _rendered(chat, [ToolCall(name=_NAME, arguments={_KEY: _VALUE})])
        assert single is not None
        start = _start(chat, turn)
        before, form = turn[:start], turn[start:]
        return cls(chat, before, single[_start(chat, single) :], form, quote)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """A whole call, without what comes before; None where only the blanks of a form could."""
        turn = _rendered(self.chat, [ToolCall(name=name, arguments=dict(arguments))])
        return None if turn is None else turn[_start(self.chat, turn) :]

    def several(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
        """Calls of one turn as the template joins them."""
        made = [ToolCall(name=name, arguments=dict(given)) for name, given in calls]
        turn = _rendered(self.chat, made)
        return None if turn is None else turn[_start(self.chat, turn) :]

    def filled(
        self,
        name: str,
        key: str,
        value: str,
        other: tuple[str, str] | None = None,
        *,
        quoted: bool = True,
    ) -> str:
        """A form with raw text in its holes.

        Args:
            other: Key and value of a second argument.
            quoted: Whether the value keeps the quotes of a text.
        """
        text = self.single if other is None else self.form
        if not quoted:
            text = text.replace(self.quote + _VALUE + self.quote, _VALUE, 1)
        other_key, other_value = other or ("", "")
        fillings = [(_NAME, name), (_OTHER_KEY, other_key), (_OTHER_VALUE, other_value)]
        for hole, filling in [*fillings, (_KEY, key), (_VALUE, value)]:
            text = text.replace(hole, filling)
        return text

    def with_arguments(self, name: str, arguments: str) -> str:
        """The form with raw text in place of all its arguments."""
        start, end = self.form.find(_KEY), self.form.find(_OTHER_VALUE) + len(_OTHER_VALUE)
        opened = self.form.rfind("{", 0, start)
        closed = self.form.find("}", end)
        if self.form.find(_NAME) < opened and closed >= 0:
            start, end = opened, closed + 1
        return (self.form[:start] + arguments + self.form[end:]).replace(_NAME, name)

    def opening(self) -> str:
        """What a call begins with, up to its name."""
        return self.form[: self.form.find(_NAME)]


def _rendered(chat: ChatFormat, calls: Sequence[ToolCall]) -> str | None:
    message: Message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [call.as_message_part() for call in calls],
    }
    try:
        ids = chat.turn_ids(message)
    except TemplateError:
        return None
    if chat.stop_ids.intersection(ids[:-1]):
        return None  # this template writes several calls as several turns
    read = chat.parse(ids, finish=Finish.STOP).calls
    is_call = len(read) == len(calls) and all(isinstance(call, ToolCall) for call in read)
    return decode(chat.renderer.tokenizer, ids[:-1]) if is_call else None


def _start(chat: ChatFormat, turn: str) -> int:
    opened = chat.syntax.opens.search(turn)
    return opened.start() if opened else 0
