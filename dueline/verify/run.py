"""A run: every check that was chosen, several at once, and a result of each whatever happens."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Protocol

from dueline.verify.check import Check, NotJudged, Result, Started, Verdict, judged
from dueline.verify.price import Sends, standing
from dueline.verify.sandbox import Sandbox
from dueline.verify.trial import Scale, Stopped, Trial

_LISTEN_SECONDS = 0.5


class Watched(Protocol):
    """Whoever watches a run. Several checks may be under way at once, each in a thread."""

    def begin(self, check: Check) -> None: ...

    def tell(self, check: Check, what: str, done: int, of: int) -> None: ...

    def end(self, check: Check, result: Result) -> None: ...


def price(checks: Sequence[Check], scale: Scale) -> float:
    """Return the dollars that these checks cost at most, with the sandbox as long as it stands."""
    sent = reduce(Sends.__add__, (check.sends(scale) for check in checks), Sends())
    return sent.dollars + standing()


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Checks to run in a sandbox, at a scale. `name` is in every payload, so that runs are told apart."""

    sandbox: Sandbox
    checks: Sequence[Check]
    scale: Scale
    name: str
    is_later: bool = False

    @property
    def dollars(self) -> float:
        """What it costs at most."""
        return price(self.checks, self.scale)

    def results(self, watched: Watched) -> Iterator[Result]:
        """Run the checks; yield what came of each. What one of them raises is its own result."""
        lanes: dict[str, list[Check]] = defaultdict(list)
        for check in self.checks:
            if check.lane:
                lanes[check.lane].append(check)
        yield from self._at_once(list(lanes.values()), watched)
        for check in self.checks:
            if not check.lane:
                yield self._result(check, watched)

    def _at_once(self, lanes: Sequence[Sequence[Check]], watched: Watched) -> Iterator[Result]:
        """Run each lane's checks in a thread of its own. Whatever ends this ends the lanes first."""
        stop, ended, left = Event(), SimpleQueue[Result](), sum(map(len, lanes))
        threads = [Thread(target=self._lane, args=(lane, watched, stop, ended), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        try:
            while left:
                with suppress(Empty):
                    # Ctrl-C is not heard by who waits without end.
                    yield ended.get(timeout=_LISTEN_SECONDS)
                    left -= 1
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _lane(self, checks: Sequence[Check], watched: Watched, stop: Event, ended: "SimpleQueue[Result]") -> None:
        with suppress(Stopped):
            for check in checks:
                ended.put(self._result(check, watched, stop))

    def _result(self, check: Check, watched: Watched, stop: Event | None = None) -> Result:
        watched.begin(check)
        begun = self.sandbox.clock.monotonic()
        trial = Trial(
            sandbox=self.sandbox,
            scale=self.scale,
            run=self.name,
            chance=random.Random(f"{self.name}{check.name}"),  # noqa: S311, it hides nothing
            tell=partial(watched.tell, check),
            is_stopped=stop.is_set if stop else lambda: False,
            is_later=self.is_later,
        )
        result = _of(check, trial)
        result = replace(result, seconds=self.sandbox.clock.monotonic() - begun)
        watched.end(check, result)
        return result


def _of(check: Check, trial: Trial) -> Result:
    """Return what came of a check. Raises Stopped."""
    if check.gap and trial.sandbox.is_local:
        return Result.of(check, Verdict.NOT_JUDGED, why=check.gap)
    try:
        return judged(check, check.run(trial), is_local=trial.sandbox.is_local)
    except Stopped:
        raise
    except NotJudged as reason:
        return Result.of(check, Verdict.NOT_JUDGED, why=str(reason))
    except Started as begun:
        return Result.of(check, Verdict.STARTED, why=str(begun))
    except Exception as error:
        return Result.of(check, Verdict.FAILED, why=f"{type(error).__name__}: {error}")
