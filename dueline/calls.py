"""Calls of the HTTP API, tried again where that may help, and several at once."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dueline.answers import HttpAnswer, Job, error_of
from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.new_job import Draft
from dueline.ports import Clock
from dueline.retry import Backoff, Patience

LANES = 8

# Sends a method, a path and a body once. Raises Unavailable when there is no answer, Forbidden without credentials.
Send = Callable[[str, str, str | None], HttpAnswer]

A = TypeVar("A")
B = TypeVar("B")


class Calls:
    """Sends by `send`, again and again while `patience` lasts, after Throttled and Unavailable.

    So whatever is sent must be safe to send twice.
    """

    def __init__(self, send: Send, *, patience: Patience, clock: Clock, jitter: Callable[[], float]) -> None:
        self._send = send
        self._patience = patience
        self._clock = clock
        self._jitter = jitter

    def ask(self, method: str, path: str, body: str | None = None, *, read: Callable[[dict[str, Any]], A]) -> A:
        """Return what `read` makes of the answer. Raises what the answer tells, or Unavailable when there is none."""
        backoff = self._backoff()
        while True:
            try:
                return read(self._told(method, path, body))
            except RETRYABLE as error:
                if not backoff.wait([error]):
                    raise

    def schedule(self, path: str, batch: Sequence[Draft | DuelineError]) -> list[Job | DuelineError]:
        """Return the job or the error of each draft, and each error that is there already, in order.

        What fails is tried again alone. A request that fails as a whole is each draft's error.
        """
        results: dict[int, Job | DuelineError] = {}
        left: dict[int, Draft] = {}
        for index, each in enumerate(batch):
            if isinstance(each, Draft):
                left[index] = each
            else:
                results[index] = each
        backoff = self._backoff()
        while left:
            results |= zip(left, self._post(path, list(left.values())), strict=True)
            failed = {index: error for index in left if isinstance(error := results[index], RETRYABLE)}
            if failed and not backoff.wait(failed.values()):
                break
            left = {index: left[index] for index in failed}
        return [results[index] for index in range(len(batch))]

    def _post(self, path: str, drafts: Sequence[Draft]) -> list[Job | DuelineError]:
        """Post jobs once; return the result of each."""
        body = f'{{"jobs":[{",".join(draft.text for draft in drafts)}]}}'
        try:
            told = self._told("POST", path, body).get("jobs")
            if not isinstance(told, list) or len(told) != len(drafts):
                raise Unavailable(f"POST {path}: the answer does not tell of each job")
            results = [attempt(_result, each) for each in told]
        except DuelineError as error:
            results = [_copy(error) for _ in drafts]
        for draft, result in zip(drafts, results, strict=True):
            if isinstance(result, DuelineError):
                result.key = draft.key
        return results

    def _told(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        return self._send(method, path, body).told(now=self._clock.now())

    def _backoff(self) -> Backoff:
        return Backoff(self._patience, clock=self._clock, jitter=self._jitter)


def attempt(call: Callable[[A], B], argument: A) -> B | DuelineError:
    """Return what a call returns, or the error that it raises."""
    try:
        return call(argument)
    except DuelineError as error:
        return error


def in_lanes(call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield the result of each call in the items' order, several calls at once; items are taken as lanes come free."""
    under_way: deque[Future[B]] = deque()
    with ThreadPoolExecutor(LANES) as pool:
        for item in items:
            under_way.append(pool.submit(call, item))
            if len(under_way) > 2 * LANES:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _result(told: Any) -> Job:
    if isinstance(told, dict) and isinstance(problem := told.get("error"), dict):
        raise error_of(problem, status=problem.get("status"), asked="the job")
    return Job.of(told)


def _copy(error: DuelineError) -> DuelineError:
    copy = type(error)(str(error))
    copy.retry_after = error.retry_after
    return copy
