"""A Lambda function that works jobs off. Its handler is `lambda_consumer.handler`.

Its event source mapping wants `ReportBatchItemFailures`, its role the policy `{name}_{queue}_consumer`, and its package
the extra `worker` of this library.
"""

from aws_lambda_powertools import Logger

import dueline

logger = Logger(service="invoices")


@dueline.lambda_handler(once=True)
def handler(job: dueline.ReceivedJob) -> None:
    charge(customer=job.payload["customer"], cents=job.payload["cents"])


def charge(*, customer: str, cents: int) -> None:
    """Charge a customer, with whatever you charge customers."""
    if cents <= 0:
        raise dueline.Discard(f"cents is {cents}: it must be 1 or more")
    logger.info("charged", extra={"customer": customer})
