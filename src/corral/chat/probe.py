"""A dummy tool and dummy messages, whose words are found again in what a template renders."""

from typing import Any

from corral.records import Message, ToolCall

PROBE_NAME, PROBE_KEY, PROBE_DESCRIPTION = "tool7QX4", "key7QX4", "Look up 7QX4"

PROBE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": PROBE_NAME,
        "description": PROBE_DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {PROBE_KEY: {"type": "string", "description": "What."}},
            "required": [PROBE_KEY],
        },
    },
}


def probe_value(turn: int) -> str:
    """The argument of the dummy call in a turn."""
    return f"value7QX4-{turn}"


def probe_call(turn: int) -> Message:
    """An assistant message that calls the dummy tool."""
    return {"role": "assistant", "content": "", "tool_calls": [probe_tool_call(turn)]}


def probe_tool_call(turn: int) -> dict[str, Any]:
    """A call of the dummy tool, as a message holds it."""
    return ToolCall(name=PROBE_NAME, arguments={PROBE_KEY: probe_value(turn)}).as_message_part()


def probe_result(turn: int) -> Message:
    """What the dummy tool answers."""
    return {"role": "tool", "name": PROBE_NAME, "content": f"result7QX4-{turn}"}
