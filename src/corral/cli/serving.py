"""``corral serve``: an environment over the network."""

import logging
import os
import sys
from typing import Annotated

import typer

from corral.cli.installing import Install, make_ready
from corral.cli.output import say


def serve(
    env: Annotated[str, typer.Argument(help="Built-in name, module:Class or path.py:Class.")],
    host: Annotated[str, typer.Option(help="Where to listen; this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    max_sessions: Annotated[
        int | None, typer.Option(min=1, help="Environments at a time, of all workers together.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, help="Processes. A client finds its lost session again only with one."),
    ] = 1,
    step_timeout: Annotated[
        float, typer.Option(help="Seconds one call may take before it costs its session.")
    ] = 300.0,
    queue_timeout: Annotated[
        float, typer.Option(help="Seconds a client waits for a free slot.")
    ] = 30.0,
    idle_timeout: Annotated[
        float, typer.Option(help="Seconds a session may do nothing; 0 for ever.")
    ] = 900.0,
    lease: Annotated[
        float, typer.Option(help="Seconds a session outlives a dropped connection.")
    ] = 60.0,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="CORRAL_TOKEN",
            show_envvar=True,
            help="What clients must send. Better in the variable: commands are seen by others.",
        ),
    ] = None,
    allow_public: Annotated[
        bool, typer.Option("--allow-public", help="Serve other machines without a token.")
    ] = False,
    mode: Annotated[
        str | None, typer.Option(help="simulation, or production: no HTTP reset, step, state.")
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Tell clients what the environment raised.")
    ] = False,
    install: Install = False,
) -> None:
    """Serve a world to Corral, OpenEnv and MCP clients.

    Example: corral serve wordle --port 8000
    """
    from dataclasses import replace

    from corral.serve.ports import free_port
    from corral.serve.running import ServeOptions
    from corral.serve.running import serve as run
    from corral.serve.security_rules import check_bind, rules_from_environment

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    rules = rules_from_environment()
    rules = replace(
        rules,
        token=token or rules.token,
        is_public_allowed=allow_public or rules.is_public_allowed,
    )
    check_bind(host, rules)  # before anything is said
    hosted = make_ready(env, install=install)
    if hosted is not None:
        # The same command, by the interpreter that has what the world needs.
        os.execv(hosted.python, [hosted.python, "-m", "corral.cli.main", *sys.argv[1:]])
    options = ServeOptions(
        env=env,
        host=host,
        port=port or free_port(host),
        max_sessions=max_sessions,
        workers=workers,
        step_timeout_s=step_timeout,
        queue_timeout_s=queue_timeout,
        idle_timeout_s=idle_timeout,
        lease_s=lease,
        mode=mode,
        is_debug=debug,
    )
    say(f"Serving {env} at http://{_shown(options.host)}:{options.port} (Ctrl-C stops it)")
    run(options, rules)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
