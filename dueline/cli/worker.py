"""Run a worker that someone wrote."""

import importlib
import os
import sys
import traceback
from typing import Annotated, Any

import typer

from dueline.errors import DuelineError
from dueline.worker.processes.link import Link
from dueline.worker.worker import GRACE_SECONDS, Worker, supervised


def worker(
    target: Annotated[str, typer.Argument(metavar="MODULE:NAME", show_default=False, help="Where the Worker is.")],
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="How many jobs of a queue run at once, in each process.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many processes work, one for each core that computes.")
    ] = 1,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Where health and metrics are told.")] = None,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that jobs have to end after SIGTERM.")] = GRACE_SECONDS,
    queue: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this queue; may be given again.")
    ] = None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C. Modules are found in the current folder, too.

    Which deployment it works for, the Worker says. Several processes are ended together, told of together, and
    started anew when they die.
    """
    link = Link.from_env(os.environ)
    if processes > 1 and link is None:
        raise typer.Exit(_supervise(processes, port=port))
    if link is not None:
        _tell_apart(link)
    found = worker_of(target)
    if link is not None:
        supervised(found, link)
    try:
        found.run(concurrency=concurrency, port=port, grace=grace, queues=queue or None)
    except ValueError as error:
        raise error if isinstance(error, DuelineError) else typer.BadParameter(str(error)) from None


def _supervise(processes: int, *, port: int | None) -> int:
    from dueline.worker.processes.supervise import supervise

    # The same command again, however it was started: with Python's own options, and from the same folders.
    return supervise([sys.executable, *sys.orig_argv[1:]], processes=processes, port=port)


def _tell_apart(link: Link) -> None:
    """Let the log and the metrics tell processes apart: before the worker's module is there, which may have metrics."""
    from dueline.worker.watch import log, metrics

    log.tell_process()
    if metrics.SHARED in os.environ:
        metrics.count_on_as(f"{os.getppid()}-{link.number}")


def worker_of(target: str) -> Worker:
    """Return the Worker that a text such as `shop.worker:worker` names."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise typer.BadParameter(f"{target!r} names no worker: it must be MODULE:NAME, such as shop.worker:worker")
    module = _module(module_name)
    found = getattr(module, name, None)
    if found is None:
        raise typer.BadParameter(f"the module {module_name!r} has no {name!r}")
    if not isinstance(found, Worker):
        raise typer.BadParameter(f"{target} is no dueline.Worker, but of type {type(found).__name__}")
    return found


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
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename}:{last.lineno}"
        raise typer.BadParameter(f"importing {name!r} failed: {type(error).__name__}: {error} ({place})") from None
