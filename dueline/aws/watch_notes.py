"""The notes of watches, in the state table: when each of them ran last."""

from datetime import datetime
from typing import TYPE_CHECKING

from dueline.aws.dynamodb_items import Items, Update
from dueline.core import instant
from dueline.core.rows import WATCH, WATCH_NOTES, WatchNote, read_watch_notes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PUT = Update(expression="SET #at = :at, #count = :count", condition="NOT #at > :at")


class WatchNotes:
    """Notes in the state table. `client` is boto3's. All calls raise Throttled or Unavailable."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._items = Items(client, lambda _: table)

    def put(self, watch: str, *, now: datetime, count: int = 0) -> None:
        """Note that a watch ran, and how much there was, unless it has run since."""
        self._items.update((WATCH, watch), _PUT, {"at": instant.text(now), "count": count})

    def read(self) -> dict[str, WatchNote]:
        """Return the notes of the watches that ever ran, by name."""
        return read_watch_notes(self._items.read(WATCH_NOTES).whole("the notes of the watches"))
