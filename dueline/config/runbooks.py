"""Runbooks: where the page of each alarm is, as its description and the doctor name it."""

RUNBOOKS = "docs/runbooks"


def runbook(name: str) -> str:
    """Return the page of an alarm.

    >>> runbook("late-jobs")
    'docs/runbooks/late-jobs.md'
    """
    return f"{RUNBOOKS}/{name}.md"
