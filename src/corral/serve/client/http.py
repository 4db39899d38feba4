"""The few HTTP requests a client makes, with the standard library."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from corral.serve.client.address import Address
from corral.serve.client.errors import (
    AuthenticationError,
    ProtocolError,
    ServerUnreachableError,
)

_MAX_BYTES = 32 * 1024 * 1024


def http_status(address: Address, path: str, *, timeout_s: float) -> int:
    """The status a GET is answered with.

    Raises:
        OSError: Nothing answered.
    """
    try:
        with _open(address, urllib.request.Request(address.http(path)), timeout_s) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def http_json(
    address: Address,
    path: str,
    *,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float,
) -> Any:
    """GET a route, or POST a JSON body to it, and return the JSON of the answer.

    Raises:
        ServerUnreachableError: Nothing answered, or not with success.
        AuthenticationError: The server wants a token.
        ProtocolError: The answer is no JSON.
    """
    request = urllib.request.Request(
        address.http(path),
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    try:
        with _open(address, request, timeout_s) as answer:
            text = answer.read(_MAX_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 401:
            raise AuthenticationError(f"{address} wants a token: token='...'") from error
        raise ServerUnreachableError(f"{address}{path} answered HTTP {error.code}.") from error
    except (OSError, ValueError) as error:
        raise ServerUnreachableError(f"{address}{path} did not answer: {error}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"{address}{path} did not answer with JSON: {error}") from error


def _open(address: Address, request: urllib.request.Request, timeout_s: float) -> Any:
    handlers = [urllib.request.ProxyHandler({})] if address.is_local else []
    return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
