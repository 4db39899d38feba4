"""Serves one of the test worlds with the official package or with Corral, until it is ended.

python -m support.serve_world official|corral WORLD PORT [--mode production] [--sessions 8]
"""

import argparse
from typing import Any

import uvicorn


def _corral_parts(world: str) -> dict[str, Any]:
    from support import walk_world

    match world:
        case "quick-walk":
            return {"env": walk_world.WalkWorld}
        case "unrepeatable-walk":
            return {"env": walk_world.UnrepeatableWalkWorld}
    return _parts(world)


def _parts(world: str) -> dict[str, Any]:
    from openenv.core.env_server.mcp_types import CallToolAction
    from openenv.core.env_server.types import Observation

    from support import openenv_worlds as worlds

    match world:
        case "probe":
            return {
                "env": worlds.ProbeWorld,
                "action_cls": worlds.ProbeAction,
                "observation_cls": worlds.ProbeObservation,
                "state_cls": worlds.ProbeState,
                "env_name": "ProbeWorld",
            }
        case "tools":
            return {
                "env": worlds.ToolWorld,
                "action_cls": CallToolAction,
                "observation_cls": Observation,
                "env_name": "ToolWorld",
            }
        case "walk":
            return {
                "env": worlds.WalkWorld,
                "action_cls": worlds.WalkAction,
                "observation_cls": worlds.WalkObservation,
                "env_name": "WalkWorld",
            }
    raise SystemExit(f"no world {world!r}")


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("implementation", choices=["official", "corral", "broken"])
    parser.add_argument("world")
    parser.add_argument("port", type=int)
    parser.add_argument("--mode", default="simulation")
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--queue-timeout-s", type=float, default=0.5)
    parser.add_argument("--lease-s", type=float, default=60.0)
    given = parser.parse_args()
    if given.implementation == "broken":
        from support.broken_server import broken_app

        app: Any = broken_app()
    elif given.implementation == "official":
        from openenv.core.env_server import create_app

        app = create_app(**_parts(given.world), max_concurrent_envs=given.sessions, mode=given.mode)
    else:
        from corral.serve import create_app as create_corral_app

        app = create_corral_app(
            **_corral_parts(given.world),
            max_concurrent_envs=given.sessions,
            mode=given.mode,
            lease_s=given.lease_s,
            queue_timeout_s=given.queue_timeout_s,
        )
    settings: dict[str, Any] = {}
    if given.implementation == "corral":
        from corral.serve.running import server_settings

        settings = server_settings()
    uvicorn.run(app, host="127.0.0.1", port=given.port, **settings | {"log_level": "error"})


if __name__ == "__main__":
    main()
