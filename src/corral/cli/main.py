"""The ``corral`` command: parse, import lazily, call one function, print."""

import sys
from typing import Annotated

import typer

from corral import __version__
from corral.cli import evaluating, listing, playing, training
from corral.cli.output import fail
from corral.errors import CorralError, UsageError

app = typer.Typer(
    name="corral",
    help="Train language-model agents by letting them act in environments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("train")(training.train)
app.command("eval")(evaluating.evaluate)
app.command("play")(playing.play)
app.command("list")(listing.list_everything)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"corral {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Train language-model agents by letting them act in environments."""


def main() -> None:
    """Run the command line; a failure is one sentence and a non-zero exit code."""
    try:
        app()
    except UsageError as error:
        fail(str(error), code=2)
    except CorralError as error:
        fail(str(error), code=1)
    except KeyboardInterrupt:
        fail(
            "Interrupted. What was finished is kept; `--resume` continues a training run.", code=130
        )


if __name__ == "__main__":
    sys.exit(main())
