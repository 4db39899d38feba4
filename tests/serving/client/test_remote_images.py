"""Pictures of an environment are the same pixels when it is served, or in a process of its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from corral.chat.observation import merge_observation
from corral.chat.pictures import loaded, pictures_of
from corral.env import OwnProcess, call_reset, prepare
from corral.env.io_thread import io_thread
from corral.serve.client.launchers import LocalProcess
from corral.serve.client.remote import RemoteEnvironment
from support import gallery
from support.gallery import Gallery, picture


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    launcher = LocalProcess(f"{gallery.__file__}:Gallery", ready_timeout_s=60)
    yield io_thread().call(launcher.start())
    io_thread().call(launcher.stop())


async def shown_by(factory: Any, **row: Any) -> list[tuple[tuple[int, int], bytes]]:
    """Size and pixels of what ``reset`` and a tool show, and the texts beside them."""
    kind = prepare(factory)
    home = kind.construct()
    observed = await call_reset(home.instance, row, executor=home.thread)
    tools = kind.tools.bind(home.instance, executor=home.thread)
    result = await tools.call("look", {"room": 4})
    assert not result.is_error
    messages = loaded(
        [
            *merge_observation([{"role": "user", "content": "Look."}], observed),
            {"role": "tool", "name": "look", "content": result.content},
        ]
    )
    assert [block.get("text") for message in messages for block in message["content"]] == [
        *("Look.", None, "What else is there?"),
        *("Room 4:", None),
    ]
    return [(one.size, one.tobytes()) for one in pictures_of(messages)]


async def test_pictures_are_those_of_the_environment_in_process(served: str):
    here = await shown_by(Gallery, seed=5)
    assert [size for size, _ in here] == [picture(5).size, picture(104).size]
    assert await shown_by(RemoteEnvironment(served), seed=5) == here
    assert await shown_by(OwnProcess(Gallery), seed=5) == here


async def test_pictures_of_the_data_do_not_stop_it(served: str):
    for factory in (RemoteEnvironment(served), OwnProcess(Gallery)):
        assert len(await shown_by(factory, seed=5, image=picture(1))) == 2
