"""Run a worker, or several processes of it."""

import importlib
import os
import sys
import traceback
from typing import Annotated, Any, Literal

import typer

from dueline.core.text import PACKAGE
from dueline.errors import DuelineError, missing_extras_named
from dueline.worker.runner import SupervisorLink
from dueline.worker.worker import GRACE_SECONDS, Worker, set_supervisor


def worker(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:NAME", show_default=False, help="The Worker, in a module that can be imported."),
    ],
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="How many jobs of each queue a process runs at once.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many processes run: for jobs that compute, one for each core.")
    ] = 1,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port of /health and /metrics; of the second process, the next."),
    ] = None,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that running jobs have to finish after SIGTERM.")
    ] = GRACE_SECONDS,
    queue: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this queue; can be repeated.")] = None,
    log: Annotated[
        Literal["json", "text"] | None,
        typer.Option(help="How log lines are written: by default as text in a terminal, else as JSON."),
    ] = None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C. The current folder is searched for its module too.

    The Worker names its deployment. Several processes stop together, and are restarted when they die.
    """
    _refuse_options_of_clients(context)
    with missing_extras_named():
        from dueline.worker.log import write_as
    write_as(log)
    link = SupervisorLink.from_env(os.environ)
    if processes > 1 and link is None:
        from dueline.worker.supervisor import supervise

        # The same command, with Python's own options.
        raise typer.Exit(supervise([sys.executable, *sys.orig_argv[1:]], processes=processes))
    if link is not None:
        from dueline.worker.log import log_process_id

        log_process_id()
        # Each process has a port of its own.
        port = port and port + link.number - 1
    worker = worker_of(target)
    if link is not None:
        set_supervisor(worker, link)
    try:
        worker.run(concurrency=concurrency, port=port, grace=grace, queues=queue or None)
    except ValueError as error:
        notes = "; ".join([str(error), *getattr(error, "__notes__", ())])
        raise error if isinstance(error, DuelineError) else typer.BadParameter(notes) from None


def _refuse_options_of_clients(context: typer.Context) -> None:
    """Raise typer.BadParameter where an option before the command says which deployment a client is to connect to."""
    main = context.parent or context
    for name in ("name", "url", "transport", "profile", "region"):
        source = main.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            instead = "the Worker names its deployment, AWS_PROFILE the profile and AWS_REGION the region"
            raise typer.BadParameter(f"--{name} is {main.params[name]!r}, which says nothing to a worker: {instead}")


def worker_of(target: str) -> Worker:
    """Return the Worker that a text such as `shop.worker:worker` names."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise typer.BadParameter(f"{target!r} names no worker: it must be MODULE:NAME, such as shop.worker:worker")
    module = _module(module_name)
    worker = getattr(module, name, None)
    if worker is None:
        raise typer.BadParameter(f"the module {module_name!r} has no {name!r}")
    if not isinstance(worker, Worker):
        raise typer.BadParameter(f"{target} is no dueline.Worker, but of type {type(worker).__name__}")
    return worker


def _module(name: str) -> Any:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise typer.BadParameter(
                f"there is no module {name!r}: looked in {folder} and where Python looks"
            ) from None
        # What a decorator of this library refuses is wrong in the line that calls it.
        lines = [f"{each.filename}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
        place = next((each for each in reversed(lines) if not each.startswith((PACKAGE, "<"))), lines[-1])
        raise typer.BadParameter(f"importing {name!r} failed: {type(error).__name__}: {error} ({place})") from None
