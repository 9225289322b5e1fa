"""Open the console: a page on this machine, about the deployment."""

import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event
from typing import Annotated, Any

import typer

from dueline import __version__
from dueline.cli import connect
from dueline.cli.connect import Run, run_of
from dueline.cli.signals import sigterm_as_ctrl_c
from dueline.console.api import api_routes
from dueline.console.calls import console_routes
from dueline.console.console import HEADERS, Console
from dueline.console.guard import Guard, new_token
from dueline.console.routes import Route, Routes
from dueline.console.runs import Runs
from dueline.console.server import served


def console(
    ctx: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 is any that is free.")] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse whatever would change anything.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the URL, and open nothing.")] = False,
) -> None:
    """Open a page in the browser that shows the deployment and looks after it, until Ctrl-C.

    It is served on this machine, to this user alone, with the same AWS credentials as all commands.
    """
    run = run_of(ctx)
    with sigterm_as_ctrl_c(), suppress(KeyboardInterrupt), opened(run, port=port, read_only=read_only) as url:
        _show(run, url)
        if not no_browser:
            webbrowser.open(url)
        Event().wait()


@contextmanager
def opened(run: Run, *, port: int, read_only: bool) -> Iterator[str]:
    """Serve the console of a deployment while the context is open; yield the URL, with the token.

    Raises DeploymentNotFound, Forbidden or Unavailable, and typer.BadParameter where the port is taken.
    """
    token, runs = new_token(), Runs()
    routes = Routes(_routes(run, runs=runs, read_only=read_only))

    def of(port: int) -> Console:
        return Console(guard=Guard(port=port, token=token), routes=routes, read_only=read_only)

    with ExitStack() as stack:
        try:
            address = stack.enter_context(served(lambda port: of(port).answer, port=port, headers=HEADERS))
        except OSError as error:
            raise typer.BadParameter(f"port {port} cannot be had: {error.strerror}") from None
        stack.callback(runs.close)
        yield f"{address}/#token={token}"


def _routes(run: Run, *, runs: Runs, read_only: bool) -> Iterator[Route]:
    reached = connect.api(run.target)

    def about() -> dict[str, Any]:
        where = {"deployment": run.target.name, "region": reached.region, "url": reached.url}
        return where | {"read_only": read_only, "version": __version__, "as": reached.caller()}

    yield from api_routes(reached.way)
    yield from console_routes(about, connect.reach(run.target, way=reached.way), runs)


def _show(run: Run, url: str) -> None:
    if run.screen.as_json:
        return run.screen.json({"url": url})
    run.screen.line(f"the console: {url}")
    return run.screen.line("whoever has this URL may do what you may; Ctrl-C ends it")
