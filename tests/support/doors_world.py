"""A world that is nothing but packages: those of several families, which go together.

Named by its path, and found without this folder on anybody's path.
"""

from corral.worlds import FAMILIES, Needs, World
from corral.worlds.echo import WORLD as ECHO

SPEC = f"{__file__}:WORLD"
FAMILY_NAMES = ("gymnasium", "openreward", "reasoning_gym", "textarena")
TIME_SERVER = "mcp-server-time==2026.10.10"

NEEDS = [needs for name in FAMILY_NAMES if (needs := FAMILIES[name].needs) is not None]

WORLD = World(
    name="doors",
    summary="Nothing to play: only packages.",
    factory=ECHO.factory,
    tasks=ECHO.tasks,
    evaluation_tasks=ECHO.evaluation_tasks,
    is_win=ECHO.is_win,
    needs=Needs(
        requirements=(*(one for needs in NEEDS for one in needs.requirements), TIME_SERVER),
        modules=tuple(module for needs in NEEDS for module in needs.modules),
        size_mb=900,
        python=(3, 12),
    ),
)
