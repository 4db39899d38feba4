"""The ``corral`` command: parse, import lazily, call one function, print."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corral import __version__
from corral.cli import (
    checking,
    evaluating,
    installing,
    listing,
    playing,
    publishing,
    scaffolding,
    serving,
    training,
)
from corral.cli.output import fail
from corral.errors import CorralError, UsageError


class _Commands(TyperGroup):
    """Turns the failure of a command into one sentence and an exit code other than 0."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            fail(str(error), code=2)
        except CorralError as error:
            fail(str(error), code=1)
        except KeyboardInterrupt:
            fail("Interrupted.", code=130)


app = typer.Typer(
    name="corral",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("train")(training.train)
app.command("sft")(training.sft)
app.command("eval")(evaluating.evaluate)
app.command("play")(playing.play)
app.command("serve")(serving.serve)
app.command("check")(checking.check)
app.command("install")(installing.install)
app.command("init")(scaffolding.init)
app.command("push")(publishing.push)
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
    """Train language-model agents by letting them act in environments.

    Example: corral play wordle
    """


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
