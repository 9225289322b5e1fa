"""Remember which jobs had their effect, by Powertools' Idempotency, in a table of its own."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
)

from dueline.errors import Unavailable
from dueline.work.verdict import Interrupted

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# A job is sent 30 days past its due time at the latest, and SQS keeps it for 14.
REMEMBERED = timedelta(days=30 + 14 + 1)


class _NeverOver:
    """Where Powertools asks when an attempt would have ended: one without a word is never known to have."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return int(REMEMBERED.total_seconds() * 1000)


class DynamoOnce:
    """The notes on one queue's jobs. Threads may share it."""

    def __init__(self, client: "DynamoDBClient", table: str, *, queue: str) -> None:
        self._notes = DynamoDBPersistenceLayer(table_name=table, boto3_client=client)
        self._prefix = queue
        self._config = IdempotencyConfig(
            expires_after_seconds=int(REMEMBERED.total_seconds()),
            hash_function="sha256",
            lambda_context=cast(Any, _NeverOver),
        )

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        def have_effect(*, key: str) -> None:
            effect()

        have_effect_once = idempotent_function(
            have_effect,
            data_keyword_argument="key",
            persistence_store=self._notes,
            config=self._config,
            key_prefix=self._prefix,
        )
        try:
            have_effect_once(key=key)
        except IdempotencyAlreadyInProgressError:
            raise Interrupted(
                "an earlier attempt began and is not known to have ended: whether it had its effect is unknown"
            ) from None
        except IdempotencyPersistenceLayerError as fault:
            raise Unavailable(f"noting that job {key} has its effect: {fault}") from fault
