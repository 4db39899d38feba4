"""Bodies of the HTTP routes, as the OpenAPI document shows them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class ResetRequest(BaseModel):
    """What ``POST /reset`` takes; further keys go to the environment."""

    model_config = ConfigDict(extra="allow")

    seed: Annotated[int, Field(ge=0, strict=True)] | None = None
    episode_id: Annotated[str, Field(max_length=255)] | None = None


class StepRequest(BaseModel):
    """What ``POST /step`` takes."""

    model_config = ConfigDict(extra="allow")

    action: dict[str, Any]
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    request_id: Annotated[str, Field(max_length=255)] | None = None


class ObservedResponse(BaseModel):
    """What ``/reset`` and ``/step`` answer."""

    observation: dict[str, Any]
    reward: float | None
    done: bool
    metadata: dict[str, Any] | None


class StateResponse(BaseModel):
    """What ``/state`` answers; environments add fields."""

    model_config = ConfigDict(extra="allow")

    episode_id: str | None = None
    step_count: int = 0


class HealthResponse(BaseModel):
    """What ``/health`` answers."""

    status: str = "healthy"


class SchemaResponse(BaseModel):
    """JSON schemas of what goes over the wire."""

    action: dict[str, Any]
    observation: dict[str, Any]
    state: dict[str, Any]
    reset_observation: dict[str, Any]


class ErrorDetail(BaseModel):
    """A failure: a stable code, a sentence, and the id of its entry in the server's log."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    error_id: str | None = None


class ErrorResponse(BaseModel):
    """The body of every answer from 500 on."""

    detail: ErrorDetail


class Refusal(BaseModel):
    """The body of a 400, 404 or 501."""

    detail: str


class SplitRequest(BaseModel):
    """Names a split of the environment's tasks."""

    split: str


class TaskRequest(SplitRequest):
    """Names one task."""

    index: int


class TaskRangeRequest(SplitRequest):
    """Names several tasks; ``stop`` is not one of them."""

    start: int | None = None
    stop: int | None = None
