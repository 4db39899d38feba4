"""A Hub that runs here: answers what an upload asks, and remembers it."""

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub(ThreadingHTTPServer):
    """Answers what a push asks, and remembers it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.forget()

    def forget(self) -> None:
        """Be as in the beginning."""
        self.requests: list[tuple[str, str, bytes]] = []
        self.tokens: set[str | None] = set()
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def bodies(self, part: str) -> list[bytes]:
        return [body for _, path, body in self.requests if part in path]

    def committed(self) -> dict[str, bytes]:
        """The files of the one commit."""
        (commit,) = self.commits()
        return commit

    def commits(self) -> list[dict[str, bytes]]:
        """The files of each commit, in order."""
        return [_files(body) for body in self.bodies("/commit/")]


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, body))
        self.server.tokens.add(self.headers.get("Authorization"))
        if self.server.refuses:
            self._answer(403, {"error": "You don't have the rights to create a space"})
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            owner = asked.get("organization") or "me"
            kind = {"space": "spaces/", "dataset": "datasets/"}.get(asked.get("type"), "")
            self._answer(200, {"url": f"{self.server.url}/{kind}{owner}/{asked['name']}"})
        elif "/preupload/" in self.path:
            how = {"uploadMode": "regular", "shouldIgnore": False}
            files = [{"path": file["path"], **how} for file in json.loads(body)["files"]]
            self._answer(200, {"files": files})
        elif "/commit/" in self.path:
            done = {"commitUrl": f"{self.server.url}/spaces/me/demo/commit/abc", "commitOid": "abc"}
            self._answer(200, {"success": True, **done})
        else:
            self._answer(200, {})

    def do_GET(self) -> None:
        self._answer(200, {"name": "me", "sha": "abc", "id": "me/demo"})

    def _answer(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _files(body: bytes) -> dict[str, bytes]:
    lines = [json.loads(line) for line in body.splitlines()]
    files = [line["value"] for line in lines if line["key"] == "file"]
    return {file["path"]: base64.b64decode(file["content"]) for file in files}
