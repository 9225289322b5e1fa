"""A check: what it proves, how, within which bounds, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dueline.verify.bound import Bound, Gap
from dueline.verify.price import Sends
from dueline.verify.trial import Scale, Trial


class Verdict(StrEnum):
    """What came of a check. `STARTED`: AWS takes hours over it; look again with `--later`."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "cannot be judged here"
    STARTED = "started"


class NotJudged(Exception):  # it is no error
    """A check found that it cannot be judged here; the message says why."""


class Started(Exception):  # nor is this
    """A check began what takes AWS hours; the message says what, and how to look again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a check measured, by name; `notes` say what a figure cannot."""

    figures: Mapping[str, float]
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """What is proved (`promise`), by figures within `bounds`. `sends` tells what it asks of AWS, to be priced.

    With a `gap` nothing of it is judged on a local AWS, and it is not run there. Checks of one `lane` follow one upon
    another, those of several run at once; one without a lane runs alone, when all the others have ended.
    One that `takes_days` is run when it is named: it begins something, and later looks what came of it.
    """

    name: str
    promise: str
    bounds: Mapping[str, Bound]
    run: Callable[[Trial], Found]
    sends: Callable[[Scale], Sends]
    lane: str | None = None
    takes_days: bool = False
    gap: Gap | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A figure and its bound. `holds` is None where it is not judged, for the reason in `why`."""

    name: str
    value: float
    bound: Bound
    holds: bool | None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of a check, and why."""

    check: str
    promise: str
    verdict: Verdict
    seconds: float = 0.0
    why: str = ""
    measures: Sequence[Measure] = field(default=())
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, check: Check, verdict: Verdict, *, why: str) -> "Result":
        """Return what came of a check that measured nothing."""
        return cls(check=check.name, promise=check.promise, verdict=verdict, why=why)


def judged(check: Check, found: Found, *, is_local: bool) -> Result:
    """Hold what a check measured to its bounds."""
    measures = [_measured(name, found, bound, is_local=is_local) for name, bound in check.bounds.items()]
    broken = [measure for measure in measures if measure.holds is False]
    if broken:
        verdict = Verdict.FAILED
    else:
        verdict = Verdict.PASSED if any(measure.holds for measure in measures) else Verdict.NOT_JUDGED
    why = [f"{each.name}: {each.value:,.4g} {each.bound.unit}, must be {each.bound}" for each in broken]
    for reason in dict.fromkeys(measure.why for measure in measures if measure.why):
        names = ", ".join(measure.name for measure in measures if measure.why == reason)
        why.append(f"not judged: {names}, because {reason}")
    return Result(
        check=check.name,
        promise=check.promise,
        verdict=verdict,
        why="; ".join(why),
        measures=measures,
        notes=found.notes,
    )


def _measured(name: str, found: Found, bound: Bound, *, is_local: bool) -> Measure:
    value = found.figures[name]
    if is_local and bound.gap:
        return Measure(name=name, value=value, bound=bound, holds=None, why=bound.gap)
    return Measure(name=name, value=value, bound=bound, holds=bound.holds(value))
