"""Dynein's workers, a thread a partition: `python -m bench.lateness.dynein_poller TABLE LANE=URL...`."""

import sys
import threading
import time
from datetime import timedelta

from bench.dynein import POLL, Dynein
from bench.dynein_on_aws import dynein_on_aws
from dueline.aws import clients
from dueline.model.job import Partition

_LONGEST = timedelta(seconds=10)


def dynein_at(table: str, url: str) -> Dynein:
    """Return Dynein's protocol over a table and a queue, as its code has it; nothing is submitted."""
    dynamodb, sqs = clients.dynamodb(longest=_LONGEST), clients.sqs(longest=_LONGEST)
    return dynein_on_aws(dynamodb, sqs, table=table, inbound=url, queue=url)


def poll(dynein: Dynein, lane: str) -> None:
    """Poll a partition for ever: at once where there may be more, else a second later."""
    while True:
        _, more = dynein.poll(Partition(queue=lane, number=0))
        if not more:
            time.sleep(POLL.total_seconds())


if __name__ == "__main__":
    named = (told.partition("=") for told in sys.argv[2:])
    threads = [threading.Thread(target=poll, args=(dynein_at(sys.argv[1], url), lane)) for lane, _, url in named]
    for thread in threads:
        thread.start()
    # A pool takes no more once the main thread has ended.
    for thread in threads:
        thread.join()
