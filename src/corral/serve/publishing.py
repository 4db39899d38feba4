"""``corral push``: an environment as a Hugging Face Space, or as an image in a registry.

First a plan is made, which needs neither network nor Docker; then it is carried out.
"""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from corral.errors import CorralError, UsageError, require
from corral.serve.packing import Packed, pack

MANIFEST = "openenv.yaml"
README = "README.md"
STANDARD_ERROR = 2
"""Where Docker's messages go, so that standard output stays clean for data."""
FRONT_MATTER = """\
---
title: {title}
sdk: docker
app_port: {port}
tags:
  - openenv
---

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What ``openenv.yaml`` says that a push needs."""

    name: str
    version: str
    port: int
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacePlan:
    """A Space to be made or updated."""

    repo_id: str
    """``owner/name``, or ``name`` alone for the account that is logged in."""
    is_private: bool
    packed: Packed
    readme: str
    """As it is sent: with front matter, without which a Space does not start."""
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlan:
    """An image to be built and pushed."""

    image: str
    packed: Packed

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What is run; the first one reads the files from its standard input."""
        return ("docker", "build", "--tag", self.image, "-"), ("docker", "push", self.image)


def plan_space(
    folder: Path, *, repo_id: str | None = None, is_private: bool, include: Sequence[str] = ()
) -> SpacePlan:
    """Find out what would become a Space.

    Raises:
        UsageError: The folder is no environment, or a file looks like a secret.
    """
    manifest = read_manifest(folder)
    repo_id = manifest.name if repo_id is None else repo_id
    if not re.fullmatch(r"([\w.-]+/)?[\w.-]+", repo_id):
        raise UsageError(f"--repo-id {repo_id!r} is not the id of a Space. Write owner/name.")
    return SpacePlan(
        repo_id=repo_id,
        is_private=is_private,
        packed=pack(folder, include=include),
        readme=_readme(folder, manifest),
        variables=manifest.variables,
    )


def plan_image(
    folder: Path, *, registry: str, tag: str | None = None, include: Sequence[str] = ()
) -> ImagePlan:
    """Find out what would become an image, called ``registry/name:tag``.

    Raises:
        UsageError: The folder is no environment, or a file looks like a secret.
    """
    manifest = read_manifest(folder)
    image = f"{registry.rstrip('/')}/{manifest.name}:{tag or manifest.version}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9.:_-]*(/[a-z0-9][a-z0-9._-]*)+:[\w][\w.-]{0,127}", image):
        raise UsageError(
            f"{image!r} cannot be the name of an image. Write, for example: --registry "
            "ghcr.io/owner --tag 0.1.0"
        )
    return ImagePlan(image=image, packed=pack(folder, include=include))


def read_manifest(folder: Path) -> Manifest:
    """Read the ``openenv.yaml`` of an environment that has a ``Dockerfile``.

    Raises:
        UsageError: One of the two is missing, or the manifest is not what it should be.
    """
    yaml = require("yaml", extra="push")
    for needed in (MANIFEST, "Dockerfile"):
        if not (folder / needed).is_file():
            raise UsageError(
                f"There is no {needed} in {folder}, so it is no environment that can be pushed. "
                "corral init NAME makes one that can."
            )
    try:
        # Everything stays text: version 0.10 is not 0.1.
        data: Any = yaml.load((folder / MANIFEST).read_text("utf-8"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / MANIFEST} is not valid YAML: {error}") from error
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", name):
        raise UsageError(
            f"{folder / MANIFEST} has name: {name!r}. Write a name in small letters, such as "
            "name: my_world"
        )
    variables = data.get("variables") or {}
    port = str(data.get("port", 8000))
    if not isinstance(variables, dict) or not port.isdecimal():
        raise UsageError(
            f"{folder / MANIFEST}: `variables` must be names with values and `port` a number."
        )
    return Manifest(
        name=name,
        version=str(data.get("version", "latest")),
        port=int(port),
        variables={str(key): str(value) for key, value in variables.items()},
    )


def push_space(plan: SpacePlan) -> str:
    """Make or update the Space; returns its address.

    Raises:
        MissingExtraError: ``huggingface_hub`` is not installed.
        CorralError: The Hub refused.
    """
    hub: Any = require("huggingface_hub", extra="push")
    api = hub.HfApi()
    try:
        space = api.create_repo(
            plan.repo_id,
            repo_type="space",
            space_sdk="docker",
            private=plan.is_private,
            exist_ok=True,
        )
        for name, value in plan.variables.items():
            api.add_space_variable(space.repo_id, name, value)
        api.create_commit(
            space.repo_id,
            repo_type="space",
            operations=_operations(plan, hub),
            commit_message="Push with corral",
        )
    except Exception as error:  # the boundary to the Hub: what its network raises has no one base
        raise CorralError(
            f"Hugging Face did not take the Space {plan.repo_id!r}. "
            f"{type(error).__name__}: {_reason(error)} Log in "
            "with `hf auth login` or set HF_TOKEN, to an account that may write there. "
            "Without the Hub: `corral push --registry` makes an image, and `corral serve` serves "
            "it from here."
        ) from error
    return str(space)


def push_image(plan: ImagePlan) -> str:
    """Build and push the image; returns its name. Docker's messages go to standard error.

    Raises:
        CorralError: There is no Docker, or it failed.
    """
    if shutil.which("docker") is None:
        raise CorralError(
            "There is no `docker` command on this machine. Install Docker, or push to a Space: "
            "corral push --repo-id owner/name"
        )
    build, push = plan.commands
    building = subprocess.Popen(build, stdin=subprocess.PIPE, stdout=STANDARD_ERROR)
    with building, suppress(BrokenPipeError):  # it failed early; its exit status says so
        _write_archive(plan.packed, cast("IO[bytes]", building.stdin))
    _check_exit(build, building.returncode)
    _check_exit(push, subprocess.run(push, check=False, stdout=STANDARD_ERROR).returncode)
    return plan.image


def _operations(plan: SpacePlan, hub: Any) -> list[Any]:
    sent = {file.place: plan.packed.folder / file.place for file in plan.packed.files}
    sources: dict[str, Any] = {**sent, README: plan.readme.encode()}
    return [
        hub.CommitOperationAdd(path_in_repo=place, path_or_fileobj=source)
        for place, source in sources.items()
    ]


def _write_archive(packed: Packed, stream: IO[bytes]) -> None:
    """The files as a tar stream: what ``docker build -`` takes as its context."""
    with stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        for file in packed.files:
            archive.add(packed.folder / file.place, arcname=file.place, recursive=False)


def _readme(folder: Path, manifest: Manifest) -> str:
    file = folder / README
    text = file.read_text(encoding="utf-8") if file.is_file() else f"# {manifest.name}\n"
    if text.startswith("---\n"):
        return text
    title = manifest.name.replace("_", " ").capitalize()
    return FRONT_MATTER.format(title=title, port=manifest.port) + text


def _check_exit(command: Sequence[str], status: int) -> None:
    if status != 0:
        raise CorralError(
            f"`{' '.join(command)}` failed with exit status {status}; what it said is above."
        )


def _reason(error: Exception) -> str:
    """The first line, and what the Hub answered: the client puts that lines below."""
    first = io.StringIO(str(error)).readline().strip()
    answered = getattr(error, "server_message", None)
    return f"{first} It answered: {answered.rstrip('.')}." if answered else first
