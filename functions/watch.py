"""The watch: tell how many of the partitions that queues.yaml declares have no tick."""

from dueline.aws.deployed import Deployed
from dueline.config import metrics
from dueline.protocol.partitions import without_tick
from functions.declared import DECLARED
from functions.log import log
from functions.telemetry import report

_MOST_NAMED = 100

logger = log()


def watch(deployed: Deployed, *, deployment: str) -> None:
    """Count the partitions without a tick, and name them in the log."""
    found = without_tick(DECLARED.partitions(), table=deployed.table, now=deployed.clock.now(), spread=deployed.spread)
    if found:
        logger.error("no tick", extra={"partitions": [str(each) for each in found[:_MOST_NAMED]]})
    report({metrics.WITHOUT_TICK: len(found)}, deployment=deployment)
