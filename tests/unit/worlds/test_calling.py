"""Tools that another library lists, as methods of a class."""

from typing import Any

from corral.env.signatures import ToolSpec
from corral.worlds.calling import calling_methods


def spec(name: str) -> ToolSpec:
    parameters = {"type": "object", "properties": {"from": {"type": "integer"}}}
    return ToolSpec(name=name, description="Do it.", parameters=parameters)


async def test_methods_call_by_the_names_of_there_whatever_python_calls_them():
    methods = calling_methods(map(spec, ("close", "a-b", "a_b", "class")), taken=["close"])
    assert list(methods) == ["close_", "a_b", "a_b_", "class_"]

    class Environment:
        async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
            return name, arguments

    called = [await method(Environment(), from_=7) for method in methods.values()]
    assert called == [(name, {"from": 7}) for name in ("close", "a-b", "a_b", "class")]
    assert [method.__name__ for method in methods.values()] == list(methods)
