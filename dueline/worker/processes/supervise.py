"""Run a command as several worker processes, with one set of signals, logs, health and metrics."""

import os
import random
from collections.abc import Sequence
from contextlib import ExitStack

from dueline.clock import SystemClock
from dueline.worker.processes.process import Process
from dueline.worker.processes.supervisor import Supervisor
from dueline.worker.runner import Ending, signalled
from dueline.worker.watch.health import answering
from dueline.worker.watch.log import log_process
from dueline.worker.watch.metrics import shared


def supervise(command: Sequence[str], *, processes: int, port: int | None) -> int:
    """Run a worker's command so many times over until SIGTERM or SIGINT; return the exit code.

    `/health` and `/metrics` of all are served on `port`. Raises OSError when it is taken.
    """
    ending, environ, clock = Ending(), dict(os.environ), SystemClock()
    with ExitStack() as stack:
        stack.enter_context(signalled(ending.ask))
        supervisor = Supervisor(
            lambda number: Process.start(command, number=number, environ=environ, clock=clock),
            processes=processes,
            clock=clock,
            jitter=random.random,
            report=log_process,
        )
        if port is not None:
            registry, told = stack.enter_context(shared(environ))
            environ |= told
            stack.enter_context(answering(port, registry=registry, health=supervisor.health))
        return supervisor.run(ending)
