"""The rows that control a queue's workers, beside those of rows.py, whose table tells where they lie."""

from datetime import datetime, timedelta

from dueline.errors import InvalidJob, Unavailable
from dueline.model import instant
from dueline.model.rate import Rate
from dueline.model.rows import Key, Row, key

PAUSED = "!paused"
RATE = "!rate"
SLOTS = "!slots"
RUN_IS_KEPT = timedelta(days=1)


def paused_key(queue: str) -> Key:
    return f"{queue}#control", PAUSED


def rate_key(queue: str) -> Key:
    return f"{queue}#control", RATE


def slots_key(queue: str, rate_set: str) -> Key:
    """Return the key of the slots that a queue's workers have taken under the rate that was set then.

    Not under `#control`: workers write it, and whoever may write one row of a partition key may write all of them.
    """
    return f"{queue}#rate", f"{SLOTS}#{rate_set}"


def run_key(queue: str, schedule: str) -> Key:
    """Return the key of the lock that the running job of a schedule has, `{job, until}`, if one at a time may run.

    `until` is in milliseconds since 1970. Workers write it: no other row has its partition key.
    """
    return f"{queue}#runs", schedule


def paused_row(queue: str, *, paused: bool, at: datetime) -> Row:
    pk, sk = paused_key(queue)
    return {"pk": pk, "sk": sk, "paused": paused, "at": instant.text(at)}


def rate_row(queue: str, rate: Rate | None, *, at: datetime) -> Row:
    pk, sk = rate_key(queue)
    limit = {} if rate is None else {"rate": str(rate)}
    return {"pk": pk, "sk": sk, **limit, "at": instant.text(at)}


def is_paused(row: Row | None) -> bool:
    return bool(row and row["paused"])


def read_rate(row: Row | None) -> tuple[Rate | None, str]:
    """Return the rate in a row, None if there is no limit, and when it was set.

    Raises Unavailable when the row cannot be read: no limit is no guess to make.
    """
    if row is None:
        return None, ""
    try:
        return Rate.parse(str(row["rate"])) if "rate" in row else None, str(row["at"])
    except (InvalidJob, KeyError) as error:
        raise Unavailable(f"row {key(row)} cannot be read: {error}") from None
