"""Alarms: those that ring, and those that nobody hears."""

from collections.abc import Iterator

from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.seen import Seen
from dueline.doctor.ticks import named


def alarms_ringing(seen: Seen) -> Iterator[Finding]:
    """Name the alarms that ring, those that tell of silence among them."""
    for alarm in seen.alarms or ():
        if alarm.is_ringing or alarm.is_silent:
            yield Finding(
                code="alarm",
                severity=Severity.WARNING,
                about=alarm.name,
                what=f"it {'tells of silence' if alarm.is_silent else 'rings'}: {alarm.description}",
                do="follow its runbook",
                page=alarm.page or "docs/operations.md#alarms",
            )


def alarms_gone(seen: Seen) -> Iterator[Finding]:
    """Name stacks that have no alarm: each makes some."""
    names = seen.deployment.names
    stacks = [names.core_stack, *(names.queue_stack(queue.name) for queue in seen.deployment.queues)]
    for stack in stacks if seen.alarms is not None else ():
        if not any(_is_of(alarm.name, stack) for alarm in seen.alarms or ()):
            yield Finding(
                code="alarms_gone",
                severity=Severity.WARNING,
                about=stack,
                what="this stack has no alarm any more: nobody is told of what goes wrong",
                do="make its alarms again, as its template has them",
                page=guide("alarms-that-are-gone"),
            )


def _is_of(alarm: str, stack: str) -> bool:
    """Tell whether an alarm is of a stack and not of one whose name goes on: behind it comes a logical id."""
    return alarm.startswith(f"{stack}-") and alarm[len(stack) + 1 :][:1].isupper()


def alarms_unheard(seen: Seen) -> Iterator[Finding]:
    """Name alarms that notify nobody, and topics that nobody has subscribed to."""
    if silent := [alarm.name for alarm in seen.alarms or () if not alarm.notifies]:
        yield _unheard("alarms", f"these alarms notify no topic, or their actions are off: {named(silent)}")
    for topic, count in (seen.subscribers or {}).items():
        if not count:
            yield _unheard(topic, "the topic of alarms has no confirmed subscriber: nobody is told")


def _unheard(about: str, what: str) -> Finding:
    return Finding(
        code="alarms_unheard",
        severity=Severity.WARNING,
        about=about,
        what=what,
        do="set alarm_email in queues.yaml and confirm the mail, or subscribe what pages you",
        page=guide("alarms-that-nobody-hears"),
    )
