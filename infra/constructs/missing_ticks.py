"""How many ticks may be missing before that is an alarm."""

from math import exp

# Of the firings of five minutes, those of the last second: a tick takes up to a second, and is counted when it ends.
# That Scheduler loses one is rarer by far: it invokes at least once, and tries again for two minutes.
_COUNTED_ELSEWHERE = 1 / 300
# In one period. Two in a row are one in a million, and CloudWatch looks each minute: every other year.
_FALSE_ALARMS = 1 / 1000
# Of two partitions that fire together, at the end of the period.
_AT_LEAST = 2


def ticks_that_may_miss(firings: int) -> int:
    """Return how many of a period's firings may leave no sample in it.

    As many as are missing by chance in all but one of a thousand periods; by the Poisson distribution, since each
    firing is counted elsewhere with the same small probability. For one, four, 60 and 400 partitions:

    >>> [ticks_that_may_miss(5 * partitions) for partitions in (1, 4, 60, 400)]
    [2, 2, 5, 16]
    """
    expected = firings * _COUNTED_ELSEWHERE
    missing, term = 0, exp(-expected)
    likely = term
    while likely < 1 - _FALSE_ALARMS:
        missing += 1
        term *= expected / missing
        likely += term
    return max(_AT_LEAST, missing)
