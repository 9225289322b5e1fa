"""A table as a deployment of before has it."""

from dataclasses import replace

from dueline.aws.dynamodb.items import Items
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.dynamodb.updates import TAKE
from dueline.model import rows


class OfBefore(DynamoTable):
    """A table of before: its states are among its jobs, and a first tick makes one in the same request."""

    def __init__(self, client, jobs):
        super().__init__(client, jobs, state=jobs)
        self._its_items, self._jobs = Items(client), jobs

    def take(self, partition, **values):
        key = rows.state_key(partition)
        taken = self._its_items.update(key, _TAKE_OF_BEFORE, values, table=self._jobs)
        return rows.read_state(taken or self._its_items.read_one(key, table=self._jobs))


_TAKE_OF_BEFORE = replace(TAKE, condition=TAKE.condition.removeprefix("attribute_exists(pk) AND "))
