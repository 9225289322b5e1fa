"""Forks of the test process, as gunicorn and Celery fork their workers."""

import os
import signal
import traceback
import warnings
from collections.abc import Callable

# Only what hangs takes as long.
_MOST_SECONDS = 120


def run_in_fork(do: Callable[[], object]) -> bool:
    """Run a function in a fork of this process; return whether it returned there."""
    with warnings.catch_warnings():
        # Python warns of forks while threads run, which is what is tried.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _end(do)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def _end(do: Callable[[], object]) -> None:
    """Run it and exit, whatever happens: the test run must not continue in the child."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_MOST_SECONDS)
        do()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
