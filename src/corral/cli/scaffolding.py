"""``corral init``: a new environment to start from."""

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.output import emit, say


def init(
    name: Annotated[str, typer.Argument(help="In snake_case; the package is called so.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the new folder is made.")
    ] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make a package: environment, server, image, tests.

    Example: corral init my_world
    """
    from corral.serve.scaffold import scaffold

    made = scaffold(name, parent=output)
    if json:
        emit(
            {
                "folder": str(made.folder),
                "files": list(made.files),
                "serve": made.serve_command,
                "test": made.test_command,
            }
        )
        return
    say(f"Made {made.folder} with {len(made.files)} files. Next:")
    for command in (f"cd {made.folder}", made.serve_command, made.test_command):
        say(f"  {command}")
