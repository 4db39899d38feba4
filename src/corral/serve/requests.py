"""What a request on ``/ws`` does, whichever dialogue it came by."""

from typing import Any

from corral.serve.frames import Frame, observation_data, time_limit
from corral.serve.mcp import McpDialect
from corral.serve.session import Session
from corral.serve.sessions import Sessions


async def answer(
    sessions: Sessions, mcp: McpDialect, session: Session, kind: str, frame: Frame
) -> tuple[str, Any]:
    """Do what a checked frame asks; type and data of the answer.

    Raises:
        ServeFault: What the peer is to be told instead.
    """
    match kind:
        case "step":
            action, limit = frame["data"], time_limit(frame)
            observed = await sessions.call(
                session, "step", lambda world: world.step(action, timeout_s=limit), timeout_s=limit
            )
            session.step_count += 1
            return "observation", observation_data(observed)
        case "reset":
            arguments = frame.get("data", {})
            observed = await sessions.call(session, "reset", lambda world: world.reset(arguments))
            session.step_count = 0
            return "observation", observation_data(observed)
        case "state":
            return "state", await sessions.call(session, "state", lambda world: world.state())
        case _:
            return "mcp", await mcp.answer(frame["data"], session=session)
