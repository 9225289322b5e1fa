"""The checks, in the order in which they are run: what does no harm first, what breaks something last."""

from dueline.verify.check import Check
from dueline.verify.checks import (
    alarms,
    bill,
    cancels,
    chain,
    faults,
    firings,
    flood,
    keys,
    lateness,
    payloads,
    rights,
    timers,
    ttl,
)

CHECKS: tuple[Check, ...] = (
    timers.CHECK,
    firings.CHECK,
    lateness.CHECK,
    lateness.CHECK_PRECISE,
    cancels.CHECK,
    cancels.CHECK_MOVES,
    keys.CHECK,
    payloads.CHECK,
    rights.CHECK,
    chain.CHECK,
    flood.CHECK,
    bill.CHECK,
    *faults.CHECKS,
    alarms.CHECK,
    ttl.CHECK,
)
