"""Items 1 to 6 and 22: the HTTP routes."""

from typing import Any

from corral.serve.check.instances import NoInstanceError, invalid_instances
from corral.serve.check.target import Target
from corral.serve.check.verdict import Check, CheckSkipped, make_check, require

_ROUTES = frozenset({"/reset", "/step", "/state"})


async def health(target: Target) -> None:
    """GET /health says healthy."""
    answer = await target.get("/health")
    is_healthy = isinstance(answer.json, dict) and answer.json.get("status") == "healthy"
    require(
        answer.status == 200 and is_healthy,
        sent="GET /health",
        came=answer,
        expected='status 200 and {"status": "healthy"}',
    )


async def metadata(target: Target) -> None:
    """GET /metadata names and describes the environment."""
    answer = await target.get("/metadata")
    found = answer.json if isinstance(answer.json, dict) else {}
    require(
        answer.status == 200
        and all(isinstance(found.get(key), str) for key in ("name", "description")),
        sent="GET /metadata",
        came=answer,
        expected="status 200, name and description as strings",
    )


async def schema(target: Target) -> None:
    """GET /schema has the JSON Schemas of action, observation and state."""
    answer = await target.get("/schema")
    found = answer.json if isinstance(answer.json, dict) else {}
    require(
        answer.status == 200
        and all(isinstance(found.get(key), dict) for key in ("action", "observation", "state"))
        and isinstance(found.get("reset_observation", {}), dict),
        sent="GET /schema",
        came=answer,
        expected="status 200 and an object each for action, observation and state",
    )


async def openapi(target: Target) -> None:
    """GET /openapi.json has a version, and lists /reset, /step, /state all or none."""
    answer = await target.get("/openapi.json")
    found = answer.json if isinstance(answer.json, dict) else {}
    info = found.get("info")
    version = info.get("version") if isinstance(info, dict) else None
    listed = _ROUTES & set(found.get("paths") or {})
    require(
        answer.status == 200 and isinstance(version, str) and listed in (frozenset(), _ROUTES),
        sent="GET /openapi.json",
        came=f"{answer.status}, version {version!r}, routes {sorted(listed)}",
        expected="status 200, a string as info.version, and all three routes or none",
    )


async def http_reset(target: Target) -> None:
    """POST /reset takes no body, {}, and seed with episode_id."""
    target.simulation()
    named = {**target.probes.reset, "seed": 1, "episode_id": "x"}
    bodies: list[Any] = [named] if target.probes.reset else [None, {}, named]
    for body in bodies:
        answer = await target.post("/reset", body)
        _require_observation(f"POST /reset {body}", answer)


async def http_seed(target: Target) -> None:
    """POST /reset refuses a negative seed with 422 and a list of details."""
    target.simulation()
    body = {**target.probes.reset, "seed": -1}
    _require_refused(f"POST /reset {body}", await target.post("/reset", body))


async def http_step(target: Target) -> None:
    """POST /step takes an action in its envelope."""
    target.simulation()
    body = {"action": target.action()}
    answer = await target.post("/step", body)
    if answer.status == 500 and target.facts.is_open:
        # Each HTTP call meets a new environment; many worlds refuse a step before a reset.
        raise CheckSkipped("the world refuses a step before a reset, and HTTP keeps no session")
    _require_observation(f"POST /step {body}", answer)


async def http_bad_step(target: Target) -> None:
    """POST /step refuses a bare action and an invalid one with 422."""
    target.simulation()
    action = target.action()
    bodies: list[Any] = [action]
    try:
        schema = (target.facts.schemas or {}).get("action") or {}
        bodies += [{"action": wrong} for _, wrong in invalid_instances(schema)]
    except NoInstanceError:
        pass  # The bare action remains.
    for body in bodies:
        _require_refused(f"POST /step {body}", await target.post("/step", body))


async def http_state(target: Target) -> None:
    """GET /state is the bare state."""
    target.simulation()
    answer = await target.get("/state")
    found = answer.json if isinstance(answer.json, dict) else {}
    require(
        answer.status == 200 and {"episode_id", "step_count"} <= set(found),
        sent="GET /state",
        came=answer,
        expected="status 200 and an object with episode_id and step_count at its top",
    )


async def production(target: Target) -> None:
    """In production mode /reset, /step and /state are gone, and the rest works."""
    if target.facts.paths is None or target.facts.paths & _ROUTES:
        raise CheckSkipped("the server is in simulation mode")
    for method, path in (("POST", "/reset"), ("POST", "/step"), ("GET", "/state")):
        answer = await (target.get(path) if method == "GET" else target.post(path, {}))
        require(answer.status == 404, sent=f"{method} {path}", came=answer, expected="status 404")
    for path in ("/health", "/schema"):
        answer = await target.get(path)
        require(answer.status == 200, sent=f"GET {path}", came=answer, expected="status 200")
    answer = await target.post("/mcp", {})
    require(answer.status == 200, sent="POST /mcp {}", came=answer, expected="status 200")


async def task_environment(target: Target) -> None:
    """The task routes know their environment in any spelling, and refuse others with 404."""
    name = await _environment_name(target)
    body = {"split": "train"}
    answer = await target.post("/no_such_environment/num_tasks", body)
    require(
        answer.status == 404,
        sent=f"POST /no_such_environment/num_tasks {body}",
        came=answer,
        expected="status 404",
    )
    usual = await target.post(f"/{name}/num_tasks", body)
    for spelling in (name.upper(), name.lower()):
        answer = await target.post(f"/{spelling}/num_tasks", body)
        require(
            answer.status == usual.status and answer.status != 404,
            sent=f"POST /{spelling}/num_tasks {body}",
            came=answer,
            expected=f"status {usual.status}, as for {name}",
        )


async def task_index(target: Target) -> None:
    """A task route that the environment does not support is 501; a bad index is 400."""
    name = await _environment_name(target)
    splits = await target.get(f"/{name}/splits")
    names = [split.get("name") for split in splits.json or () if isinstance(split, dict)]
    split = names[0] if splits.status == 200 and names else "train"
    body = {"split": split, "index": 10**9}
    answer = await target.post(f"/{name}/task", body)
    expected = 400 if splits.status == 200 else 501
    require(
        answer.status == expected,
        sent=f"POST /{name}/task {body}",
        came=answer,
        expected=f"status {expected}, as /{name}/splits answered {splits.status}",
    )


async def _environment_name(target: Target) -> str:
    answer = await target.get("/list_environments")
    require(
        answer.status == 200
        and isinstance(answer.json, list)
        and bool(answer.json)
        and isinstance(answer.json[0], str),
        sent="GET /list_environments",
        came=answer,
        expected="status 200 and a list of names",
    )
    return answer.json[0]


def _require_observation(sent: str, answer: Any) -> None:
    found = answer.json if isinstance(answer.json, dict) else {}
    require(
        answer.status == 200 and {"observation", "reward", "done"} <= set(found),
        sent=sent,
        came=answer,
        expected="status 200 and an object with observation, reward and done",
    )


def _require_refused(sent: str, answer: Any) -> None:
    found = answer.json if isinstance(answer.json, dict) else {}
    require(
        answer.status == 422 and isinstance(found.get("detail"), list),
        sent=sent,
        came=answer,
        expected="status 422 and a list as detail",
    )


HTTP_CHECKS: tuple[Check, ...] = (
    make_check(health, 1, 2),
    make_check(metadata, 1, 2),
    make_check(schema, 1, 2),
    make_check(openapi, 1, 2),
    make_check(http_reset, 3),
    make_check(http_seed, 3),
    make_check(http_step, 4),
    make_check(http_bad_step, 4),
    make_check(http_state, 5),
    make_check(production, 6),
    make_check(task_environment, 22),
    make_check(task_index, 22),
)
