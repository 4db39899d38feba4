"""Talk to environment servers: clients, launchers, and remote worlds as environments."""

from corral.serve.client.address import Address, address_of, is_loopback
from corral.serve.client.env_client import EnvClient, StepResult, SyncEnvClient
from corral.serve.client.errors import (
    ActionError,
    AuthenticationError,
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
from corral.serve.client.mcp_client import MCPToolClient
from corral.serve.client.options import ClientOptions
from corral.serve.client.remote import RemoteEnvironment

__all__ = [
    "ActionError",
    "Address",
    "AuthenticationError",
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
