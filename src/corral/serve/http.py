"""The HTTP routes: what the server is, and single calls to environments that live no longer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic_core import PydanticSerializationError, to_json

from corral.serve import http_models as models
from corral.serve.faults import Code, InvalidRequest, ServeFault, StepTimeout, execution_fault
from corral.serve.sessions import Sessions
from corral.serve.settings import Mode
from corral.serve.world import Observed

_UNREADABLE: dict[int | str, dict[str, Any]] = {
    400: {"model": models.Refusal, "description": "The body is no text"},
}
_FAILURES: dict[int | str, dict[str, Any]] = {
    500: {"model": models.ErrorResponse, "description": "The environment failed"},
    504: {"model": models.ErrorResponse, "description": "The environment took too long"},
}
_STATUS = {
    Code.CAPACITY_REACHED: 503,
    Code.STEP_TIMEOUT: 504,
    Code.VALIDATION_ERROR: 422,
}


def add_routes(app: FastAPI, sessions: Sessions) -> None:
    """Add all routes but those for tasks and for MCP."""
    _add_descriptions(app, sessions)
    if sessions.settings.mode is Mode.SIMULATION:
        _add_calls(app, sessions)
    app.add_exception_handler(ServeFault, _answer_fault)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(Exception, _answer_bug)


def _add_descriptions(app: FastAPI, sessions: Sessions) -> None:
    kind = sessions.kind

    @app.get("/health", tags=["Health"])
    async def health() -> models.HealthResponse:
        """Whether the server runs."""
        return models.HealthResponse()

    @app.get("/metadata", tags=["Environment Info"], responses=_FAILURES)
    async def metadata() -> dict[str, Any]:
        """What the environment is; asked of an environment once at most."""
        described = getattr(kind, "metadata", None)
        own: dict[str, Any] = {}
        if described is not None:
            own = await _limited(sessions, "get_metadata", described())
        return {
            "name": kind.name,
            "description": kind.description,
            "readme_content": None,
            "version": kind.version,
            "author": None,
            "documentation_url": None,
        } | own

    @app.get("/schema", tags=["Schema"])
    async def schema() -> models.SchemaResponse:
        """JSON schemas of actions, observations and state."""
        return models.SchemaResponse(
            action=kind.action_schema,
            observation=kind.observation_schema,
            state=kind.state_schema,
            reset_observation=kind.observation_schema,
        )


def _add_calls(app: FastAPI, sessions: Sessions) -> None:
    @app.post(
        "/reset",
        tags=["Environment Control"],
        response_model=models.ObservedResponse,
        responses=_UNREADABLE | _FAILURES,
    )
    async def reset(request: models.ResetRequest | None = None) -> Response:
        """Reset a new environment, and close it. Episodes are played over ``/ws``."""
        arguments = request.model_dump(exclude_unset=True) if request is not None else {}
        return _observed(await sessions.once("reset", lambda world: world.reset(arguments)))

    @app.post(
        "/step",
        tags=["Environment Control"],
        response_model=models.ObservedResponse,
        responses=_UNREADABLE | _FAILURES,
    )
    async def step(request: models.StepRequest) -> Response:
        """Step a new environment, and close it. Episodes are played over ``/ws``."""
        limit = request.timeout_s
        return _observed(
            await sessions.once("step", lambda world: world.step(request.action, timeout_s=limit))
        )

    @app.get(
        "/state",
        tags=["State Management"],
        response_model=models.StateResponse,
        responses=_FAILURES,
    )
    async def state() -> Response:
        """The state of a new environment."""
        return _json(await sessions.once("state", lambda world: world.state()))


def add_task_routes(app: FastAPI, sessions: Sessions, env_name: str) -> None:
    """Add the routes that list an environment's tasks."""
    ask = _asker(sessions, env_name)
    responses: dict[int | str, dict[str, Any]] = {
        400: {"model": models.Refusal, "description": "There is no such task"},
        404: {"model": models.Refusal, "description": "There is no such environment"},
        501: {"model": models.Refusal, "description": "The environment lists no tasks"},
        **_FAILURES,
    }

    @app.get("/list_environments", tags=["Tasks"])
    async def list_environments() -> list[str]:
        """The name of the environment, for the routes below."""
        return [env_name]

    @app.get("/{env}/splits", tags=["Tasks"], responses=responses)
    async def list_splits(env: str) -> list[dict[str, Any]]:
        """The splits of the environment's tasks."""
        return [_split(split) for split in await ask(env, "list_splits")]

    @app.post("/{env}/tasks", tags=["Tasks"], responses=responses)
    async def list_tasks(env: str, request: models.SplitRequest) -> dict[str, Any]:
        """All tasks of a split."""
        return {"tasks": await ask(env, "list_tasks", request.split), "env_name": env_name}

    @app.post("/{env}/num_tasks", tags=["Tasks"], responses=responses)
    async def num_tasks(env: str, request: models.SplitRequest) -> dict[str, Any]:
        """How many tasks a split has."""
        return {"num_tasks": await ask(env, "num_tasks", request.split)}

    @app.post("/{env}/task", tags=["Tasks"], responses=responses)
    async def get_task(env: str, request: models.TaskRequest) -> dict[str, Any]:
        """One task."""
        return {"task": await ask(env, "get_task", request.split, request.index)}

    @app.post("/{env}/task_range", tags=["Tasks"], responses=responses)
    async def get_task_range(env: str, request: models.TaskRangeRequest) -> dict[str, Any]:
        """Several tasks."""
        found = await ask(env, "get_task_range", request.split, request.start, request.stop)
        return {"tasks": found}


def _asker(sessions: Sessions, env_name: str) -> Callable[..., Awaitable[Any]]:
    kind = sessions.kind

    async def ask(env: str, method: str, *arguments: Any) -> Any:
        if env.lower() != env_name.lower():
            raise HTTPException(404, f"unknown environment '{env}'")
        call_once = getattr(kind, "call_once", None)
        if call_once is None or not hasattr(getattr(kind, "cls", None), method):
            raise HTTPException(501, f"{method} is not supported for this environment")
        try:
            return await _limited(sessions, method, call_once(method, *arguments))
        except IndexError:
            raise HTTPException(400, f"Invalid task index: {arguments[1:]}") from None

    return ask


async def _limited(sessions: Sessions, method: str, call: Awaitable[Any]) -> Any:
    """What a method of a short-lived environment gives, within the limit of a step."""
    limit = sessions.settings.step_timeout_s
    what = f"{sessions.kind.name}.{method}"
    try:
        async with asyncio.timeout(limit):
            return await call
    except TimeoutError:
        raise StepTimeout(what, limit) from None
    except (IndexError, ServeFault):
        raise
    except Exception as error:
        raise execution_fault(what, error, is_debug=sessions.settings.is_debug) from error


def _split(split: Any) -> dict[str, Any]:
    if isinstance(split, str):
        kind = split if split in ("train", "validation", "test") else "validation"
        return {"name": split, "type": kind}
    if hasattr(split, "model_dump"):
        return split.model_dump(mode="json")
    return dict(split)


def _observed(observed: Observed) -> Response:
    reward = observed.reward
    return _json(
        {
            "observation": observed.observation,
            "reward": float(reward) if isinstance(reward, bool) else reward,
            "done": observed.done,
            "metadata": observed.metadata or None,
        }
    )


def _json(content: Any) -> Response:
    return Response(to_json(content, inf_nan_mode="null"), media_type="application/json")


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """Say what is wrong with a body, also where what it holds is no JSON (NaN)."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    try:
        content = to_json({"detail": problems}, inf_nan_mode="null", fallback=str)
    except (PydanticSerializationError, UnicodeError):
        shown = ("type", "loc", "msg")
        content = to_json({"detail": [{key: one[key] for key in shown} for one in problems]})
    return Response(content, status_code=422, media_type="application/json")


async def _answer_fault(request: Request, fault: Exception) -> JSONResponse:
    if isinstance(fault, InvalidRequest):
        return JSONResponse({"detail": fault.errors}, 422)
    if not isinstance(fault, ServeFault):
        raise fault
    headers = {"retry-after": "5"} if fault.code is Code.CAPACITY_REACHED else None
    return JSONResponse({"detail": fault.as_data()}, _STATUS.get(fault.code, 500), headers)


async def _answer_bug(request: Request, error: Exception) -> JSONResponse:
    return await _answer_fault(request, execution_fault("The server", error))
