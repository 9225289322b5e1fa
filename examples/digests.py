"""A digest on every working day: a schedule beside its function, a run by hand, and those of days that were missed.

`dueline schedules get emails digest` shows when it runs next, `dueline schedules history emails digest` how it went.
"""

from collections.abc import Sequence
from datetime import datetime

from dueline import Client, ReceivedJob, SubmittedRun, Worker

schedules = Client.connect().schedules("emails")
worker = Worker()


@worker.schedule("emails", "digest", cron="0 7 * * MON-FRI", zone="Europe/Berlin", payload={"to": "all@example.com"})
def digest(job: ReceivedJob) -> None:
    """Send the digest. However many workers declare its schedule, it runs once a day, at seven in Berlin."""
    send(to=job.payload["to"], text=f"What happened until {job.scheduled_for:%Y-%m-%d %H:%M} UTC.")


def run_now() -> SubmittedRun:
    """Run it once more, now. The schedule's own runs come as they would."""
    return schedules.run("digest")


def make_up_for(start: datetime, end: datetime) -> Sequence[SubmittedRun]:
    """Run it for the days that were missed. Called again for the same span, it sends nothing twice."""
    return schedules.backfill(
        "digest", start=start, end=end, idempotency_key=f"{start.isoformat()} to {end.isoformat()}"
    )


def send(*, to: str, text: str) -> None:
    """Send an e-mail, with whatever you send e-mails."""


if __name__ == "__main__":
    worker.run()
