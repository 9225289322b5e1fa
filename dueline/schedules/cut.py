"""Cut: the instant at which one generation of a schedule ends and the next begins, and what it cancels.

All of it follows from a head and a fence: no clock is asked, of which two processes have two.
"""

from datetime import datetime

from dueline.model.schedule_rows import CHANGE_CANCELLATIONS
from dueline.schedules.head import Head
from dueline.schedules.occurrence import between, jitter, step

# The rest is left for what jitter has put off: less than two, three where the clock is changed.
_MOST = CHANGE_CANCELLATIONS - 5


def cut_of(head: Head, fence: datetime | None) -> datetime:
    """Return up to where a head serves when it is changed now.

    It is its partition's fence, but not before the head begins. Where ticks have stood still for so long that more jobs
    lie beyond it than one transaction can cancel, it is later.
    """
    cut = head.start if fence is None else max(fence, head.start)
    beyond = _beyond(head, cut)
    return beyond[-_MOST - 1] if len(beyond) > _MOST else cut


def cancelled_by(head: Head, cut: datetime, *, next_is_live: bool) -> list[datetime]:
    """Return the nominals of a head that end with it, whether their rows exist or not: planners may yet write them.

    If no runs follow, those go too that jitter has put off beyond the cut.
    """
    put_off = jitter(head.queue, head.name, head.definition)
    return _beyond(head, cut if next_is_live else cut - put_off)


def _beyond(head: Head, cut: datetime) -> list[datetime]:
    if not head.is_live:
        return []
    rule = head.definition.rule
    return list(between(rule, cut, step(rule, head.planned_to)))
