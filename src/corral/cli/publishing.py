"""``corral push``: an environment to a Space or a registry."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.output import emit, say
from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.serve.publishing import ImagePlan, SpacePlan


def push(
    folder: Annotated[Path, typer.Argument(help="The environment's folder.")] = Path(),
    repo_id: Annotated[
        str | None, typer.Option(help="The Space, as owner/name. [default: name in openenv.yaml]")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Only you see the Space.")] = False,
    registry: Annotated[
        str | None, typer.Option(help="Push an image there instead, such as ghcr.io/owner.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Of the image. [default: version in openenv.yaml]")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Send this file although it looks like a secret.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; do nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Push an environment to a Space or a registry.

    Example: corral push --repo-id owner/name --dry-run
    """
    from corral.serve import publishing

    if registry is not None:
        if repo_id is not None or private:
            raise UsageError("--registry pushes an image; leave out --repo-id and --private.")
        image = publishing.plan_image(folder, registry=registry, tag=tag, include=include or ())
        plan, carry_out = _image_as_json(image), lambda: publishing.push_image(image)
    else:
        if tag is not None:
            raise UsageError("--tag is for an image; give --registry, too.")
        space = publishing.plan_space(
            folder, repo_id=repo_id, is_private=private, include=include or ()
        )
        plan, carry_out = _space_as_json(space), lambda: publishing.push_space(space)
    plan["dry_run"] = dry_run
    if not json:
        _show(plan)
    if not dry_run:
        plan["pushed"] = carry_out()
    if json:
        emit(plan)
    else:
        say("Nothing was sent." if dry_run else f"Pushed: {plan['pushed']}")


def _space_as_json(plan: "SpacePlan") -> dict[str, Any]:
    readme_bytes = len(plan.readme.encode())
    sizes = {file.place: file.size for file in plan.packed.files} | {"README.md": readme_bytes}
    return {
        "space": plan.repo_id,
        "private": plan.is_private,
        "variables": dict(plan.variables),
        "front_matter": plan.readme.split("---\n")[1],
        "files": sizes,
        "left_out": {entry.place: entry.reason for entry in plan.packed.left_out},
    }


def _image_as_json(plan: "ImagePlan") -> dict[str, Any]:
    return {
        "image": plan.image,
        "commands": [" ".join(command) for command in plan.commands],
        "files": {file.place: file.size for file in plan.packed.files},
        "left_out": {entry.place: entry.reason for entry in plan.packed.left_out},
    }


def _show(plan: dict[str, Any]) -> None:
    if "space" in plan:
        visibility = "private" if plan["private"] else "public"
        say(f"Space {plan['space']} ({visibility}, Docker):")
        for line in plan["front_matter"].splitlines():
            say(f"  {line}")
        for name, value in plan["variables"].items():
            say(f"  variable {name}={value}")
    else:
        say(f"Image {plan['image']}:")
        for command in plan["commands"]:
            say(f"  {command}")
    say(f"{len(plan['files'])} files, {sum(plan['files'].values()):,} bytes:")
    for place, size in sorted(plan["files"].items()):
        say(f"  {size:>10,}  {place}")
    if plan["left_out"]:
        say("Left out:")
        for place, reason in plan["left_out"].items():
            say(f"  {place}  ({reason})")
