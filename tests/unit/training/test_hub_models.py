import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from corral.errors import UsageError
from corral.serve.ports import free_port
from corral.training.hub_models import check_hub_has, check_hub_has_dataset


class Hub(ThreadingHTTPServer):
    """Answers every question about a model with one status."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        # The client has questions of its own.
        if self.path.startswith(("/api/models/", "/api/datasets/")):
            self.server.asked.append(self.path)
        body = b'{"id": "owner/model", "siblings": []}'
        self.send_response(self.server.status)
        if self.server.status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that this process may ask."""
    with Hub() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()


def test_a_model_that_the_hub_has_not_is_told_after_one_question(hub: Hub):
    hub.status = 404
    with pytest.raises(UsageError, match=r"model='owner/typo' is no .* has no model of"):
        check_hub_has("owner/typo", "model")
    assert hub.asked == ["/api/models/owner/typo"]


def test_a_model_that_the_hub_has_is_asked_for_once(hub: Hub):
    check_hub_has("owner/there", "model")
    check_hub_has("owner/there", "model")
    assert hub.asked == ["/api/models/owner/there"]


def test_a_busy_hub_is_left_to_what_tries_again(hub: Hub):
    hub.status = 503
    check_hub_has("owner/busy", "model")


def test_a_hub_that_does_not_answer_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(UsageError, match=r"reward_funcs='owner/far' .* cannot be reached"):
        check_hub_has("owner/far", "reward_funcs")


@pytest.mark.parametrize("name", [".", "./missing", "a/b/c", "no id at all", "~/models"])
def test_what_is_no_hub_id_is_not_asked_for(hub: Hub, name: str):
    check_hub_has(name, "model")
    assert hub.asked == []


def test_a_cached_model_is_not_asked_for(hub: Hub, tmp_path: Path):
    snapshot = tmp_path / "models--owner--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (tmp_path / "models--owner--model" / "refs").mkdir()
    (tmp_path / "models--owner--model" / "refs" / "main").write_text("abc")
    check_hub_has("owner/model", "model", cache_dir=tmp_path)
    assert hub.asked == []


def test_a_dataset_that_the_hub_has_not_is_told_after_one_question(hub: Hub, tmp_path: Path):
    hub.status = 404
    with pytest.raises(UsageError, match=r"grpo\.dataset='owner/typo' is no .* has no dataset of"):
        check_hub_has_dataset("owner/typo", "grpo.dataset", tmp_path)
    assert hub.asked == ["/api/datasets/owner/typo"]


def test_a_dataset_that_was_read_before_is_not_asked_for(hub: Hub, tmp_path: Path):
    (tmp_path / "owner___data").mkdir()
    check_hub_has_dataset("owner/data", "grpo.dataset", tmp_path)
    assert hub.asked == []
