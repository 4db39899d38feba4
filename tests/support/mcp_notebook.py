"""A small MCP server written with the official SDK: a notebook. Over HTTP on the port given."""

import os
import sys
import time
from typing import Any, Literal

from mcp.server.fastmcp import FastMCP, Image

port = int(sys.argv[1]) if len(sys.argv) > 1 else None
server = FastMCP("notebook", instructions="A notebook with pages.", port=port or 0)
notes: list[str] = []


@server.tool()
def write(text: str, page: int = 1, colour: Literal["red", "blue"] = "blue") -> str:
    """Write a note.

    Args:
        text: What to write.
    """
    notes.append(f"{page}: {text} in {colour}")
    return f"There are {len(notes)} notes."


@server.tool()
def read() -> list[str]:
    """Read all notes."""
    return notes


@server.tool()
def reset(page: int) -> str:
    """Tear out a page."""
    if page != 1:
        raise ValueError(f"There is no page {page}.")
    return "Torn."


@server.tool(structured_output=False)
def draw() -> list[Any]:
    """Draw a dot."""
    dot = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63"
        "f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
    return ["A dot:", Image(data=dot, format="png")]


@server.tool()
def process() -> str:
    """Tell the process."""
    return str(os.getpid())


@server.tool()
def fail(how: Literal["crash", "hang"]) -> str:
    """Fail badly."""
    if how == "crash":
        os._exit(3)
    time.sleep(60)
    return "never"


if __name__ == "__main__":
    server.run("stdio" if port is None else "streamable-http")
