"""Once: remember which jobs had their effect, with Powertools' Idempotency, in a table of its own."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    exceptions,
    idempotent_function,
)
from botocore.exceptions import BotoCoreError, ClientError

from dueline.aws.botocore_errors import map_botocore_errors
from dueline.core.text import name_of, text_of
from dueline.errors import Unavailable
from dueline.worker.delivery import Discard, Interrupted

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# After this, a job that comes again has its effect again: one is sent 30 days past its due time at the latest, and SQS
# keeps it for 14.
REMEMBERED = timedelta(days=30 + 14 + 1)


class _NeverOver:
    """Says to Powertools that an attempt without a result never expires: it may have had its effect."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return int(REMEMBERED.total_seconds() * 1000)


class _NoEffect(Exception):
    """What Powertools hears of an effect that raised: it gives errors of its own types a meaning."""


class DynamoOnce:
    """The notes on one queue's jobs, under keys that begin with `{queue}#`. Threads may share it."""

    def __init__(self, client: "DynamoDBClient", table: str, *, queue: str) -> None:
        self._notes = DynamoDBPersistenceLayer(table_name=table, boto3_client=client)
        self._prefix = queue
        self._config = IdempotencyConfig(
            expires_after_seconds=int(REMEMBERED.total_seconds()),
            hash_function="sha256",
            lambda_context=cast("Any", _NeverOver),
        )
        # Otherwise the first call does so, and a second thread sees it half done, with another hash.
        self._notes.configure(self._config, key_prefix=queue)

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        raised: Exception | None = None
        fault: Exception | None = None

        def have(*, key: str) -> None:
            nonlocal raised
            try:
                effect()
            except Exception as error:
                raised = error
                raise _NoEffect from None

        once = idempotent_function(
            have,
            data_keyword_argument="key",
            persistence_store=self._notes,
            config=self._config,
            key_prefix=self._prefix,
        )
        try:
            once(key=key)
        except exceptions.IdempotencyAlreadyInProgressError:
            raise Interrupted from None
        except (exceptions.IdempotencyPersistenceLayerError, exceptions.IdempotencyInconsistentStateError) as error:
            fault = error
        except _NoEffect:
            pass
        # What a discarded job left in the table keeps nothing back: it does not come again by itself.
        if raised is not None and (fault is None or isinstance(raised, Discard)):
            # Outside of any `except`, which would be noted as what it happened in.
            raise raised
        if fault is not None:
            _raise(fault, key, raised)


def _raise(fault: Exception, key: str, error: Exception | None) -> None:
    """Raise Throttled or Unavailable, with the error of the effect if that raised as well."""
    doing = f"noting whether job {key} had its effect"
    if error is not None:
        doing += f", which raised {name_of(error)}: {text_of(error)}"
    with map_botocore_errors(doing):
        if isinstance(fault.__cause__, BotoCoreError | ClientError):
            raise fault.__cause__
    raise Unavailable(f"{doing}: {fault}") from fault
