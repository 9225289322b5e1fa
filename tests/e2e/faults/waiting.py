"""Jobs that wait in a table that throttles."""

import time
from collections.abc import Callable
from datetime import timedelta

from tests.e2e.faults.exchange import straight, uid_of
from tests.e2e.faults.mishaps import the_table_throttled
from tests.e2e.faults.stage import Stage, is_ingested
from tests.e2e.inbox import wait_until

_ON_ITS_WAY_SECONDS = 1


def wait_in_the_table(stage: Stage, schedule: Callable[[timedelta], list[str]], *, lead: timedelta) -> list[str]:
    """Have jobs in the table, none of them handed over, and let the table throttle from then on; return their ids.

    `schedule` is asked for jobs that are due after `lead`, and again after twice that where the machine is so slow that
    ticks were quicker.
    """
    while True:
        waiting = schedule(lead)
        assert wait_until(lambda: is_ingested(stage)), "ingest hangs"
        stage.proxy.around = the_table_throttled
        # What was asked before that has its answer.
        time.sleep(_ON_ITS_WAY_SECONDS)
        delivered = {uid for record in list(stage.proxy.records) for uid in record.delivered}
        if not delivered & set(map(uid_of, waiting)):
            return waiting
        stage.proxy.around, lead = straight, lead * 2
