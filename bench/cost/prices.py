"""What AWS asks, out of bench/prices.json, where each price has its unit, its source and the day when it was read."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

PATH = Path(__file__).parents[1] / "prices.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """A price as it is written down: `source` is where AWS tells it, `checked` against what on the day `read`."""

    value: float
    unit: str
    source: str
    read: str
    checked: str

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise ValueError(f"price is {self.value}: it must be over 0")
        if not self.source.startswith("https://"):
            raise ValueError(f"source is {self.source!r}: it must be a URL")


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """Prices of one region in dollars; bench/prices.json tells what each is for."""

    write_units_million: float
    read_units_million: float
    write_capacity_hour: float
    read_capacity_hour: float
    table_gb_month: float
    recovery_gb_month: float
    infrequent_write_units_million: float
    infrequent_read_units_million: float
    infrequent_gb_month: float
    sqs_million: float
    fair_million: float
    lambda_million: float
    lambda_gb_second: float
    http_million: float
    schedule_million: float
    schedules_free: float
    log_gb: float
    log_gb_month: float
    metric_month: float
    alarm_month: float
    cache_million: float
    cache_gb_hour: float
    cache_least_gb: float


def written_down() -> dict[str, Price]:
    """Return every price as it is written down."""
    told = json.loads(PATH.read_text())["prices"]
    return {name: Price(**price) for name, price in told.items()}


def prices() -> Prices:
    """Return the prices. Raises ValueError where the file has other ones than are asked for."""
    known, asked = written_down(), {field.name for field in fields(Prices)}
    if known.keys() != asked:
        raise ValueError(f"{PATH.name}: {', '.join(sorted(known.keys() ^ asked))}: missing, or asked for by nothing")
    return Prices(**{name: price.value for name, price in known.items()})
