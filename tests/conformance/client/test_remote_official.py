"""Worlds of the official package as environments of ours."""

import pickle
from typing import Any

import pytest

from corral.env import call_get_reward, call_reset, is_done, prepare
from corral.env.lifecycle import close
from corral.errors import EnvironmentFault, InfrastructureFault
from corral.serve.client import RemoteEnvironment
from corral.serve.ports import free_port
from support.client_worlds import Board

from .conftest import official


async def test_a_field_that_chooses_becomes_one_tool_per_value(board: str):
    kind = prepare(RemoteEnvironment(board))
    assert kind.name == "Board"
    assert set(kind.tools.names) == {"left", "stay", "right"}
    left = kind.tools.find("left")
    assert left is not None
    assert left.schema["function"] == {
        "name": "left",
        "description": "Left. Move on the board.",
        "parameters": {
            "type": "object",
            "properties": {
                "far": {"type": "boolean", "description": "Whether to move two squares."}
            },
        },
        "return": {"type": "string"},
    }


@pytest.mark.report("P064")
async def test_an_episode_of_typed_actions(board: str):
    kind = prepare(RemoteEnvironment(board))
    env = kind.construct().instance
    assert await call_reset(env, {"prompt": "Go.", "seed": 1}) == '{"place": 0}'
    tools = kind.tools.bind(env)
    assert (await tools.call("right", {"far": True})).content == '{"place": 2}'
    assert (await tools.call("right", {})).content == '{"place": 3}'
    wrong = await tools.call("left", {"far": "very"})
    assert wrong.is_error
    assert not is_done(env)
    assert (await tools.call("left", {})).content == '{"place": 2}'
    assert is_done(env)
    assert await call_get_reward(env) == 1.0  # 1 + 1 - 1
    assert await call_get_reward(env) == 1.0
    await close(env)


async def test_what_a_model_reads_can_be_chosen(board: str):
    kind = prepare(RemoteEnvironment(board, show=lambda seen: f"at {seen['place']}"))
    env = kind.construct().instance
    assert await call_reset(env, {}) == "at 0"
    assert (await kind.tools.bind(env).call("right", {})).content == "at 1"
    await close(env)


async def test_an_action_without_a_choice_is_one_tool_named_after_it(counter: str):
    kind = prepare(RemoteEnvironment(counter))
    assert kind.tools.names == ("count",)
    schema = kind.tools.schemas[0]["function"]
    assert schema["description"] == "Say something to the counter."
    assert schema["parameters"]["required"] == ["text"]
    assert schema["parameters"]["properties"]["text"] == {
        "type": "string",
        "description": "What to say (at least 1 characters).",
    }
    env = kind.construct().instance
    await call_reset(env, {"start": 4})
    tools = kind.tools.bind(env)
    assert '"count": 5' in str((await tools.call("count", {"text": "hi"})).content)
    failed = await tools.call("count", {"text": "hi", "fails": True})
    assert failed.is_error
    assert "told to fail" in str(failed.content)
    refused = await tools.call("count", {"text": ""})
    assert refused.is_error
    assert '"count": 6' in str((await tools.call("count", {"text": "hi"})).content)
    assert await call_get_reward(env) == 0.5
    await close(env)


async def test_mcp_tools_are_called_through_step(toolbox: str):
    kind = prepare(RemoteEnvironment(toolbox))
    assert set(kind.tools.names) == {"put", "nameless", "explode"}
    put = kind.tools.find("put")
    assert put is not None
    assert put.schema["function"]["description"] == "Put a thing into the bag."
    assert put.schema["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "thing": {"type": "string", "description": "What to put in."},
            "times": {"type": "integer", "description": "How many of it."},
        },
        "required": ["thing"],
    }
    env = kind.construct().instance
    assert await call_reset(env, {}) is None
    tools = kind.tools.bind(env)
    assert (await tools.call("put", {"thing": "cup"})).content == "1 things"
    assert (await tools.call("put", {"thing": "cup", "times": 2})).content == "3 things"
    assert (await tools.call("nameless", {})).content == "3"
    failed = await tools.call("explode", {})
    assert failed.is_error
    assert "it exploded" in str(failed.content)
    assert await call_get_reward(env) == 0.0
    await close(env)


async def test_a_lost_session_is_an_infrastructure_fault_and_never_a_reward():
    port = free_port()
    with official("board", port=port) as url:
        kind = prepare(RemoteEnvironment(url))
        env = kind.construct().instance
        await call_reset(env, {})
        tools = kind.tools.bind(env)
        await tools.call("right", {})
    with pytest.raises(InfrastructureFault):
        await tools.call("right", {})
    with pytest.raises(InfrastructureFault):
        await call_get_reward(env)
    with pytest.raises(InfrastructureFault):
        await call_reset(env, {})
    with pytest.raises(InfrastructureFault):
        prepare(RemoteEnvironment(url))
    await close(env)


async def test_a_column_that_is_no_json_is_named(board: str):
    env = prepare(RemoteEnvironment(board)).construct().instance
    with pytest.raises(EnvironmentFault, match="cannot be written as JSON"):
        await call_reset(env, {"thing": object()})
    await close(env)


def test_a_factory_can_be_sent_to_another_process(board: str):
    factory = RemoteEnvironment(board)
    prepare(factory)
    copy: Any = pickle.loads(pickle.dumps(factory))
    assert prepare(copy).name == Board.__name__
