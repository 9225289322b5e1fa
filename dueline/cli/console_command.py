"""Open the console: a page on this machine, about the deployment."""

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import Annotated

import typer

from dueline.cli import connect

_REQUIRED = {"starlette", "uvicorn"}


def console(
    ctx: typer.Context,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, envvar="DUELINE_CONSOLE_PORT", help="The port on 127.0.0.1; 0 is any that is free."
        ),
    ] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the URL only.")] = False,
) -> None:
    """Open the console in the browser, until Ctrl-C.

    It is a page about queues, jobs, schedules and dead letters, served on this machine, to this user only, with the
    same AWS credentials as all commands.
    """
    run: connect.CommandRun = ctx.obj
    with suppress(KeyboardInterrupt), serving(run, port=port, read_only=read_only) as url:
        run.screen.json({"url": url})
        run.screen.line(f"the console: {url}")
        run.screen.line("everyone with this URL may do what you may; Ctrl-C ends it")
        if not no_browser:
            webbrowser.open(url)
        Event().wait()


@contextmanager
def serving(run: connect.CommandRun, *, port: int, read_only: bool) -> Iterator[str]:
    """Serve the console of a deployment while the context is open; yield the URL, with the token.

    Raises DeploymentNotFound, Forbidden or Unavailable, and typer.BadParameter where the port is taken. Ends the
    command where the extra `console` is not installed.
    """
    try:
        from dueline.console import api_proxy, application, dead_letter_runs, guard, queue_views, server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _REQUIRED:
            raise
        needed = "the console needs Starlette and uvicorn: pip install 'dueline[console]'"
        raise typer.BadParameter(needed) from None

    upstream, backend, region = connect.console(run.target)
    token, runs = guard.new_token(), dead_letter_runs.BackgroundRuns()

    about = {"deployment": run.target.name, "region": region, "read_only": read_only}
    try:
        listener = server.listen(port)
    except OSError as error:
        message = f"port {port} is not available: {error.strerror}. --port sets another, 0 any that is free"
        raise typer.BadParameter(message) from None
    app = application.console_app(
        [
            *api_proxy.api_routes(upstream),
            *queue_views.queue_routes(about, backend),
            *dead_letter_runs.dead_letter_routes(backend, runs),
        ],
        port=listener.getsockname()[1],
        token=token,
        read_only=read_only,
    )
    with server.serve(app, listener) as url:
        try:
            yield f"{url}/#token={token}"
        finally:
            runs.close()
