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
