"""Runs the checks one after the other, and keeps each verdict."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from websockets.exceptions import WebSocketException

from corral.errors import UsageError
from corral.serve.check.frame_checks import FRAME_CHECKS
from corral.serve.check.http_checks import HTTP_CHECKS
from corral.serve.check.mcp_checks import MCP_CHECKS
from corral.serve.check.session_checks import SESSION_CHECKS
from corral.serve.check.survey import survey
from corral.serve.check.target import Target
from corral.serve.check.verdict import Check, CheckFailed, CheckSkipped, Status, Verdict

CHECKS: tuple[Check, ...] = (*HTTP_CHECKS, *FRAME_CHECKS, *SESSION_CHECKS, *MCP_CHECKS)
"""Every check, in the order in which they run."""


async def run_checks(
    target: Target,
    *,
    checks: Sequence[Check] = CHECKS,
    is_thorough: bool = False,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Examine a server; one verdict a check.

    Args:
        target: The server.
        checks: Which checks.
        is_thorough: Also those that take a minute or move megabytes.
        on_verdict: Is told each verdict as it comes.
    """
    try:
        await target.get("/health")
    except OSError as error:
        raise UsageError(f"No server answers at {target.url}: {error}") from error
    target = replace(target, facts=await survey(target))
    verdicts: list[Verdict] = []
    for check in checks:
        verdict = await _verdict(check, target, is_thorough=is_thorough)
        verdicts.append(verdict)
        if on_verdict is not None:
            on_verdict(verdict)
    return verdicts


async def _verdict(check: Check, target: Target, *, is_thorough: bool) -> Verdict:
    verdict = Verdict(id=check.id, items=check.items, title=check.title, status=Status.PASSED)
    if check.is_thorough and not is_thorough:
        return replace(verdict, status=Status.SKIPPED, reason="takes long: --thorough")
    started = time.monotonic()
    try:
        await check.run(target)
    except CheckSkipped as skipped:
        verdict = replace(verdict, status=Status.SKIPPED, reason=str(skipped))
    except CheckFailed as failed:
        verdict = replace(
            verdict,
            status=Status.FAILED,
            sent=failed.sent,
            came=failed.came,
            expected=failed.expected,
        )
    except (OSError, TimeoutError, WebSocketException) as error:
        came = f"{type(error).__name__}: {error}"
        verdict = replace(
            verdict,
            status=Status.FAILED,
            sent="the check's requests",
            came=came,
            expected="a connection that holds",
        )
    return replace(verdict, seconds=round(time.monotonic() - started, 3))
