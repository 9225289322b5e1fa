"""The handlers of a queue, and which of them runs a job."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dueline.core.job import StoredJob, check_kind
from dueline.core.queue_settings import WorkSettings
from dueline.core.text import PACKAGE, shown
from dueline.worker.delivery import BY_POLICY, ReceivedJob, Retries


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A function that processes the jobs of a queue, of one `kind` or without one.

    With `once`, each job has its effect at most once. At most `concurrency` jobs of the queue run at a time, by default
    as many as the worker's own setting allows.
    """

    queue: str
    call: Callable[[ReceivedJob], Any]
    kind: str | None = None
    once: bool = False
    concurrency: int | None = None
    retry: Retries = BY_POLICY

    def __post_init__(self) -> None:
        check_kind(self.kind)
        check_function(self.call, queue=self.queue)
        if not isinstance(self.retry, Retries):
            raise ValueError(f"retry is {shown(self.retry)}: it must be Retries(…)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Handlers:
    """The handlers of a queue, by kind. Those of a schedule get all of its jobs, whatever their kind.

    The one without a kind, under None, takes what no other takes.
    """

    queue: str
    by_kind: Mapping[str | None, Handler]
    by_schedule: Mapping[str, Handler] = field(default_factory=dict)

    def find(self, job: StoredJob | None) -> Handler | None:
        """Return the handler of a job; None if there is none. A message that carries no job has neither."""
        if job is None:
            return self.by_kind.get(None)
        return self.by_schedule.get(job.schedule or "") or self.of_kind(job.kind)

    def of_kind(self, kind: str | None) -> Handler | None:
        return self.by_kind.get(kind) or self.by_kind.get(None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that have a handler of their own, in order."""
        return tuple(sorted(kind for kind in self.by_kind if kind is not None))

    @property
    def concurrency(self) -> int | None:
        return next((each.concurrency for each in self.by_kind.values() if each.concurrency is not None), None)

    def check(self, settings: WorkSettings) -> None:
        """Raise ValueError where a queue allows fewer attempts than a handler is to have, or less time for them."""
        for handler in self.by_kind.values():
            retries, policy = handler.retry, settings.retry
            whose = f"the handler of {f'kind {handler.kind!r} of ' if handler.kind else ''}queue {self.queue!r}"
            if retries.attempts is not None and retries.attempts > settings.max_receives:
                raise ValueError(
                    f"attempts is {retries.attempts} for {whose}: it must be at most the queue's max_receives, which is"
                    f" {settings.max_receives}, as SQS itself moves a message to the dead-letter queue after that:"
                    " raise max_receives in queues.yaml"
                )
            attempts = retries.attempts_of(settings)
            least = sum(retries.delay_after(number, policy=policy, jitter=0.0) for number in range(1, attempts))
            if retries != BY_POLICY and least >= settings.message_retention:
                raise ValueError(
                    f"the delays of {attempts} attempts of {whose} are {least} seconds at least: SQS deletes a message"
                    f" {settings.message_retention} seconds after it was sent, so raise message_retention_days in"
                    " queues.yaml, or have fewer or shorter delays"
                )


def is_coroutine_function(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def check_function(call: Callable[..., Any], *, queue: str = "") -> None:
    """Raise ValueError for what is no function of one job, or would return before its body runs."""
    whose = f"the handler of queue {queue!r}" if queue else "the handler"
    must = "it must be a function or a coroutine function of one job"
    if not callable(call):
        raise ValueError(f"{whose} is {call!r}: {must}")
    # An object's own is that of its type.
    for each in (call, type(call).__call__):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise ValueError(f"{whose} is {call!r}, a generator function, of which nothing would run: {must}")
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        # Some of those in C say nothing of their arguments.
        return
    try:
        signature.bind(None)
    except TypeError:
        raise ValueError(f"{whose} is {call!r}, of the arguments {signature}: {must}") from None


# Whose frames are no caller's.
_OURS = (PACKAGE, contextlib.__file__)


@contextmanager
def blamed_on_caller() -> Iterator[None]:
    """Have what a decorator raises say at its end, and so after its traceback, which line of the caller's is meant."""
    try:
        yield
    except Exception as error:
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        error.add_note(f"in {frame.f_code.co_filename}:{frame.f_lineno}")
        raise
