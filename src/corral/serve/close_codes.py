"""How WebSocket connections end, as ``docs/protocol.md`` lists it; for servers and clients."""

from enum import IntEnum


class CloseCode(IntEnum):
    """Why a connection was closed. Plain OpenEnv peers see ``GOOD_BYE`` for all but one."""

    GOOD_BYE = 1000
    TOO_LARGE = 1009
    """A frame was larger than its reader takes; plain peers see this, too."""
    FAILED = 1011
    FULL = 1013
    TAKEN_OVER = 4001
    WRONG_TOKEN = 4003
    LOST = 4004
    IDLE = 4008
