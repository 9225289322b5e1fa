"""DynamoDB's TTL, which collects every row of Dueline's in the end: how long it takes over one."""

from datetime import timedelta

from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found, NotJudged, Started
from dueline.verify.price import Sends
from dueline.verify.trial import Scale, Trial

NAME = "ttl"
# "Within a few days", say AWS's pages: what the cost model reckons with.
_LONGEST = timedelta(days=2)
_AGAIN = "look again with `dueline verify --only ttl --later`"


def run(trial: Trial) -> Found:
    """Leave a row whose time is over; later, look whether it is still there."""
    if not trial.is_later:
        trial.sandbox.leave(trial.run, until=trial.now)
        raise Started(f"a row waits for DynamoDB to delete it, which may take two days; {_AGAIN}")
    rows = trial.sandbox.left()
    if not rows:
        raise NotJudged("no row was left in this deployment: begin with `dueline verify --only ttl`")
    overdue = [row for row in rows if row.is_there and trial.now - row.until > _LONGEST]
    if not overdue and any(row.is_there for row in rows):
        longest = max(trial.now - row.until for row in rows if row.is_there)
        raise Started(f"a row is still there after {longest / timedelta(hours=1):.1f} hours; {_AGAIN}")
    gone = [row for row in rows if not row.is_there]
    for row in gone:
        trial.sandbox.forget(row.name)
    return Found(figures={"deleted": len(gone), "there after two days": len(overdue)})


def sends(_: Scale) -> Sends:
    return Sends(writes=4, reads=4)


CHECK = Check(
    name=NAME,
    promise="DynamoDB deletes a row within two days after its time: it is run when it is named, and looked at later",
    bounds={"deleted": SOME, "there after two days": NONE},
    run=run,
    sends=sends,
    gap=Gap.TTL,
    takes_days=True,
)
