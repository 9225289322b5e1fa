"""Cut: the instant at which one generation of a schedule ends and the next begins, and what it cancels.

All of it follows from a head and a fence: no clock is asked, of which two processes have two.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from dueline.model.job import JobId
from dueline.model.schedule_rows import CHANGE_CANCELLATIONS
from dueline.schedules.head import KEPT_GENERATIONS, Head
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
    """Yield the runs of earlier generations that are due after a cut. A pause has ended those of before it."""
    for past in takewhile(lambda past: not (past.paused or past.deleted), head.generations):
        since = max(past.start, cut - jitter(head.queue, head.name, past.definition))
        for nominal in between(past.definition.rule, since, past.end):
            yield occurrence_id(head, past.number, past.definition, nominal)


def _beyond(head: Head, after: datetime, *, cut: datetime) -> list[datetime]:
    """Return the nominals after an instant that planners may write, or a change that plans up to its cut."""
    if not head.is_live:
        return []
    rule = head.definition.rule
    return list(between(rule, after, max(cut, step(rule, head.planned_to))))
