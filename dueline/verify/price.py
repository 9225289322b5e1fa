"""What a run costs at most: what its checks send, at AWS's prices."""

from dataclasses import dataclass, fields

_MILLION, _GB = 1_000_000, 1_000_000_000
# Dollars in us-east-1, after no free tier; bench/prices.json has their sources.
PRICES = {
    "write_units_million": 0.625,
    "read_units_million": 0.125,
    "sqs_million": 0.40,
    "lambda_million": 0.20,
    "lambda_gb_second": 0.0000133334,
    "http_million": 1.00,
    "log_gb": 0.50,
    "metric_month": 0.30,
    "alarm_month": 0.10,
}
_HOURS_A_MONTH = 730
# What a run is done in for certain, deployment and removal included: CloudWatch bills by the hour.
_HOURS = 6
_METRICS, _ALARMS = 60, 100
# A function's memory, and how long an invocation takes on average, generously.
_GB_OF_A_FUNCTION, _SECONDS_OF_AN_INVOCATION = 0.5, 0.5
_BYTES_A_LINE = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Sends:
    """What is asked of AWS: requests to SQS, units of DynamoDB, requests to the HTTP API, invocations of functions."""

    sqs: float = 0
    writes: float = 0
    reads: float = 0
    http: float = 0
    invocations: float = 0

    def __add__(self, other: "Sends") -> "Sends":
        return Sends(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Sends)})

    @property
    def dollars(self) -> float:
        units = self.writes * PRICES["write_units_million"] + self.reads * PRICES["read_units_million"]
        asked = self.sqs * PRICES["sqs_million"] + self.http * PRICES["http_million"]
        time = _GB_OF_A_FUNCTION * _SECONDS_OF_AN_INVOCATION * PRICES["lambda_gb_second"]
        invoked = self.invocations * (PRICES["lambda_million"] / _MILLION + time)
        logged = (self.http + self.invocations) * _BYTES_A_LINE * PRICES["log_gb"] / _GB
        return (units + asked) / _MILLION + invoked + logged


def of_jobs(count: int, *, calls: float | None = None) -> Sends:
    """Return what so many jobs ask for at most, each written, handed over, received and deleted alone.

    `calls` is how many requests they are scheduled in, by default one for fifty.
    """
    calls = count / 50 + 1 if calls is None else calls
    return Sends(sqs=3 * count, writes=3 * count, reads=3 * count, http=calls, invocations=2 * calls)


def standing() -> float:
    """Return what the sandbox costs while it stands, whatever is sent: metrics, alarms, and ticks each minute."""
    watched = _METRICS * PRICES["metric_month"] + _ALARMS * PRICES["alarm_month"]
    ticks = Sends(writes=600 * _HOURS, reads=600 * _HOURS, invocations=600 * _HOURS)
    return watched * _HOURS / _HOURS_A_MONTH + ticks.dollars
