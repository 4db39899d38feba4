"""Talk to environment servers: clients, launchers, and remote worlds as environments.

What looks at tools, and with them at pydantic, is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corral.serve.client.address import Address, address_of, is_loopback
from corral.serve.client.env_client import EnvClient, StepResult, SyncEnvClient
from corral.serve.client.errors import (
    ActionError,
    AuthenticationError,
    BeneathEnvironmentError,
    CapacityError,
    ClientClosedError,
    ExecutionError,
    FactoryError,
    LaunchError,
    MessageTooLargeError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    ServerUnreachableError,
    SessionLostError,
    ToolCallError,
)
from corral.serve.client.launchers import DockerImage, Launcher, LocalProcess, Space
from corral.serve.client.options import ClientOptions

if TYPE_CHECKING:
    from corral.serve.client.mcp_client import MCPToolClient
    from corral.serve.client.remote import RemoteEnvironment

_HOMES = {
    "MCPToolClient": "corral.serve.client.mcp_client",
    "RemoteEnvironment": "corral.serve.client.remote",
}

__all__ = [
    "ActionError",
    "Address",
    "AuthenticationError",
    "BeneathEnvironmentError",
    "CapacityError",
    "ClientClosedError",
    "ClientOptions",
    "DockerImage",
    "EnvClient",
    "ExecutionError",
    "FactoryError",
    "LaunchError",
    "Launcher",
    "LocalProcess",
    "MCPToolClient",
    "MessageTooLargeError",
    "ProtocolError",
    "RemoteEnvironment",
    "RemoteError",
    "RequestTimeoutError",
    "ServerUnreachableError",
    "SessionLostError",
    "Space",
    "StepResult",
    "SyncEnvClient",
    "ToolCallError",
    "address_of",
    "is_loopback",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral.serve.client' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
