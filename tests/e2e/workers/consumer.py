"""The Lambda consumer of the story."""

import book
import fates

import dueline


@dueline.lambda_handler(once=True)
def handler(job: dueline.ReceivedJob) -> None:
    fates.meet(job)
    book.write("audit", job.id)
