"""The locks of a queue's schedules on DynamoDB, a row each."""

from datetime import datetime
from typing import TYPE_CHECKING

from dueline.aws.dynamodb.items import Items
from dueline.aws.dynamodb.updates import Update
from dueline.model import instant
from dueline.model.control_rows import RUN_IS_KEPT, run_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Updates alone: that is all that workers need a right to. A lock that is free keeps its row, until its TTL.
_NAMES = ("job", "until", "ttl")
TAKE = Update(
    expression="SET #job = :job, #until = :until, #ttl = :ttl",
    condition="attribute_not_exists(#job) OR #job = :job OR #until <= :now",
    names=_NAMES,
)
# A renewal that arrives after its lock was freed does not take it again.
RENEW = Update(expression=TAKE.expression, condition="#job = :job", names=_NAMES)
FREE = Update(expression="REMOVE #job, #until", condition="#job = :job", names=("job", "until"))


class DynamoLocks:
    """The locks of one queue's schedules, in the table of states. `client` is boto3's."""

    def __init__(self, client: "DynamoDBClient", table: str, *, queue: str) -> None:
        self._items = Items(client)
        self._table = table
        self._queue = queue

    def take(self, schedule: str, *, job: str, now: datetime, until: datetime) -> bool:
        return self._update(schedule, TAKE, {**_held(job, until), "now": instant.epoch_ms(now)})

    def renew(self, schedule: str, *, job: str, until: datetime) -> bool:
        return self._update(schedule, RENEW, _held(job, until))

    def free(self, schedule: str, *, job: str) -> None:
        self._update(schedule, FREE, {"job": job})

    def _update(self, schedule: str, update: Update, values: dict[str, str | int]) -> bool:
        return self._items.update(run_key(self._queue, schedule), update, values, table=self._table) is not None


def _held(job: str, until: datetime) -> dict[str, str | int]:
    ttl = int((until + RUN_IS_KEPT).timestamp())
    return {"job": job, "until": instant.epoch_ms(until), "ttl": ttl}
