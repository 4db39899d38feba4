"""Uploading a trained model to the Hugging Face Hub."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from corral.errors import require

logger = logging.getLogger(__name__)


class HubUploads:
    """The uploads of one run, to one repository.

    An upload reads its folder while training goes on, so the next one waits, or is left out.
    """

    def __init__(self, args: Any, default_name: str) -> None:
        self._args = args
        self._name: str = args.hub_model_id or default_name
        self._running: Future[Any] | None = None

    def upload(
        self,
        write: Callable[[], Path],
        *,
        message: str,
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
    ) -> Any:
        """Create the repository if need be and upload the folder that ``write`` fills.

        What is not given is as the configuration says.

        Returns:
            The commit; its future with ``blocking=False``.

        Raises:
            MissingExtraError: The Hub's client is not installed.
            huggingface_hub.errors.HfHubHTTPError: The Hub refuses.
        """
        args = self._args
        self.wait()
        api = require("huggingface_hub", extra="push").HfApi(token=token or args.hub_token)
        is_private = args.hub_private_repo if private is None else private
        repository = api.create_repo(self._name, exist_ok=True, private=is_private).repo_id
        branch = revision or args.hub_revision
        if branch is not None:
            api.create_branch(repository, branch=branch, exist_ok=True)
        uploaded = api.upload_folder(
            repo_id=repository,
            folder_path=write(),
            commit_message=message,
            revision=branch,
            run_as_future=not blocking,
        )
        if not blocking:
            self._running = uploaded
        return uploaded

    def upload_beside_training(self, write: Callable[[], Path], *, message: str) -> None:
        """Start an upload unless one is running; a Hub that fails does not cost the training."""
        if (
            self._running is not None
            and not self._running.done()
            and not self._args.hub_always_push
        ):
            logger.info("%s: left out, as the last upload is still running.", message)
            return
        try:
            self.upload(write, message=message, blocking=False)
        except Exception:
            logger.exception("%s: not uploaded. Training goes on.", message)

    def wait(self) -> None:
        """Wait for the upload that is running; one that failed is reported."""
        running, self._running = self._running, None
        if running is not None and (error := running.exception()) is not None:
            logger.error("An upload to %s failed: %s", self._name, error)
