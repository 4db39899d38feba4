"""The world of ``serve_load.py``: the same cheap steps for both servers.

    python benchmarks/serve_world.py official 8000    # what the official package serves
    corral serve benchmarks/serve_world.py:Counter    # what Corral serves

Corral's copy does not import the official package, whose imports alone take more memory than the
whole server may.
"""

import sys
from typing import Any

MAX_SESSIONS = 1200


def counter(environment: type, action: type, observation: type, state: type) -> type:
    """The world on the base classes of one of the packages."""

    class CounterAction(action):
        message: str

    class CounterObservation(observation):
        echoed: str
        count: int

    class Counter(environment):
        SUPPORTS_CONCURRENT_SESSIONS = True
        REQUIRES_OWN_THREAD = False  # Corral's; the official server knows no such thing

        def __init__(self) -> None:
            super().__init__()
            self._count = 0
            self._episode_id: str | None = None

        def reset(
            self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
        ) -> CounterObservation:
            self._count, self._episode_id = 0, episode_id
            return CounterObservation(echoed="", count=0)

        def step(
            self, action: CounterAction, timeout_s: float | None = None, **kwargs: Any
        ) -> CounterObservation:
            self._count += 1
            return CounterObservation(echoed=action.message, count=self._count, reward=0.5)

        @property
        def state(self) -> Any:
            return state(episode_id=self._episode_id, step_count=self._count)

    Counter.step.__annotations__.update({"action": CounterAction, "return": CounterObservation})
    Counter.reset.__annotations__["return"] = CounterObservation
    Counter.parts = (CounterAction, CounterObservation)
    return Counter


def serve_official(port: int) -> None:
    """Serve the world with the official package, as its template does."""
    import uvicorn
    from openenv.core.env_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State

    world = counter(Environment, Action, Observation, State)
    app = create_fastapi_app(world, *world.parts, max_concurrent_envs=MAX_SESSIONS)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    serve_official(int(sys.argv[2]))
else:
    from corral.serve import Action, Environment, Observation, State

    Counter = counter(Environment, Action, Observation, State)
