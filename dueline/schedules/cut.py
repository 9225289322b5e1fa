"""Cut: the instant at which one generation of a schedule ends and the next begins, and what it cancels.

For a head that makes runs all of it follows from that and a fence: no clock is asked, of which two processes have two.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from dueline.errors import TooManyChanges
from dueline.model import instant
from dueline.model.job import JobId
from dueline.model.schedule_rows import CHANGE_CANCELLATIONS
from dueline.schedules.definition import SECOND
from dueline.schedules.head import KEPT_GENERATIONS, Generation, Head
from dueline.schedules.occurrence import between, jitter, occurrence, occurrence_id, step

# The rest is left for what jitter has put off: of each generation less than two, three where the clock is changed.
_MOST = CHANGE_CANCELLATIONS - 5 - 2 * KEPT_GENERATIONS


def cut_of(head: Head, fence: datetime | None) -> datetime:
    """Return up to where a head serves when it is changed now.

    It is its partition's fence, but not before the head begins. Where ticks have stood still for so long that more jobs
    lie beyond it than one transaction can cancel, it is later.
    """
    cut = head.start if fence is None else max(fence, head.start)
    beyond = _beyond(head, cut, cut=cut)
    return beyond[-_MOST - 1] if len(beyond) > _MOST else cut


def resumed_at(head: Head, fence: datetime | None, *, now: datetime) -> datetime:
    """Return from when on a head that is paused or deleted makes runs again: from now on, or from its cut if later.

    Where ticks stand still the fence is in the past, and runs of the pause would be caught up. Of the runs of a pause,
    which are none, two clocks say the same.
    """
    return max(cut_of(head, fence), instant.round_up(now))


def check_changes(head: Head, cut: datetime) -> None:
    """Raise TooManyChanges if a run of the generation that a change at a cut drops from the head may be due after it.

    A pause or a delete would not know of that run any more.
    """
    dropped = list(_not_ended(head))[KEPT_GENERATIONS - 1 :]
    put_off = [id for past in dropped for id in _put_off_of(past, head, cut)]
    if not put_off:
        return
    was, until = dropped[0], instant.text(max(id.due for id in put_off))
    raise TooManyChanges(
        f"schedule {head.queue}/{head.name} was changed {KEPT_GENERATIONS} times since {instant.text(was.end)}, and its"
        f" jitter of {was.definition.jitter // SECOND} s puts a run of before off to {until}: change it again from then"
        " on; a pause or delete goes at once"
    )


def cancelled_by(head: Head, cut: datetime, *, next_is_live: bool) -> list[JobId]:
    """Return the runs of a head that end with it, whether their rows exist or not: planners may yet write them.

    If no runs follow, those go too that jitter has put off beyond the cut, of the generations before it as well.
    """
    if not head.is_live:
        return []
    put_off = timedelta(0) if next_is_live else jitter(head.queue, head.name, head.definition)
    ended = [occurrence(head, nominal).id for nominal in _beyond(head, cut - put_off, cut=cut)]
    return ended if next_is_live else [*ended, *_put_off_before(head, cut)]


def _put_off_before(head: Head, cut: datetime) -> Iterator[JobId]:
    """Yield the runs of earlier generations that are due after a cut."""
    for past in _not_ended(head):
        yield from _put_off_of(past, head, cut)


def _not_ended(head: Head) -> Iterator[Generation]:
    """Yield the earlier generations of a head, the latest first. A pause has ended the runs of those before it."""
    return takewhile(lambda past: past.is_live, head.generations if head.is_live else ())


def _put_off_of(past: Generation, head: Head, cut: datetime) -> Iterator[JobId]:
    """Yield the runs of an earlier generation that are due after a cut."""
    since = max(past.start, cut - jitter(head.queue, head.name, past.definition))
    for nominal in between(past.definition.rule, since, past.end):
        yield occurrence_id(head, past.number, past.definition, nominal)


def _beyond(head: Head, after: datetime, *, cut: datetime) -> list[datetime]:
    """Return the nominals after an instant that planners may write, or a change that plans up to its cut."""
    if not head.is_live:
        return []
    rule = head.definition.rule
    return list(between(rule, after, max(cut, step(rule, head.planned_to))))
