"""What came out, as tables and pictures."""

from collections.abc import Iterator
from typing import Any

from bench import charts
from bench.part import Figures
from bench.tables import table
from dueline.model.queue_settings import JOBS_PER_PARTITION

_OUTAGES = {"dynamodb": "DynamoDB", "sqs": "SQS", "scheduler": "Scheduler"}
_DAY = 86_400


def markdown(figures: Figures) -> str:
    return "\n\n".join(_parts(figures))


def _parts(figures: Figures) -> Iterator[str]:
    yield f"### One partition\n\n{_partition(figures)}"
    yield f"What its ticks hand over a second, with rows of 1 KB, when one thing is changed:\n\n{_lifted(figures)}"
    yield f"Slowed half as much, they hand over {figures['less_slow']:.2f} times as many."
    yield "![Lateness over jobs a second](../bench/results/scale-knee.svg)"
    yield f"### Partitions needed, at {JOBS_PER_PARTITION} jobs/s for each\n\n{_rates(figures)}"
    yield f"### An hour's outage\n\n{_outages(figures)}"
    yield "![Jobs past due over time](../bench/results/scale-backlog.svg)"


def _partition(figures: Figures) -> str:
    headings = ("row", "its ticks hand over", "its key takes", "sustained, jobs/s", "on time at 95 %", "all at :00")
    return table(headings, map(_one_size, figures["partition"]))


def _one_size(told: dict[str, Any]) -> tuple[str, ...]:
    rates = (f"{told[name]:,.0f}" for name in ("ticks", "writes", "sustained"))
    shares = (_percent(told[name]["on_time"]) for name in ("steady", "together"))
    return (f"{told['row_bytes']:,} B", *rates, *shares)


def _lifted(figures: Figures) -> str:
    as_it_is = figures["lifted"]["as it is"]
    rows = ((name, f"{rate:,.0f}", f"{rate / as_it_is:.2f}") for name, rate in figures["lifted"].items())
    return table(("changed", "jobs/s", "times"), rows)


def _rates(figures: Figures) -> str:
    headings = (
        *("jobs/s", "partitions", "ingest functions, if all is buffered", "a new table's ramp"),
        *("p50", "p99", "max", "on time (60 s)", "jobs simulated", "lost"),
    )
    rows = (
        (
            f"{each['total']:,}",
            each["partitions"],
            each["ingest_functions"],
            f"{each['ramp_minutes']:.0f} min",
            *(f"{each[name]:.2f} s" for name in ("p50", "p99", "max")),
            _percent(each["on_time"]),
            f"{each['jobs']:,}",
            each["lost"],
        )
        for each in figures["rates"]
    )
    return table(headings, rows)


def _outages(figures: Figures) -> str:
    headings = ("outage", "load", "lost", "repeated", "latest job", "on time again after", "all ingested after")
    rows = (
        (
            _outage(each),
            f"{each['share']:.0%}",
            each["lost"],
            f"{each['repeats']:.1%}",
            _minutes(each["max"]),
            _minutes(each["drained"]) if each["calm"] else "over 6 h",
            _minutes(each["ingested"]) if each["service"] == "dynamodb" else "",
        )
        for each in figures["outages"]
    )
    return table(headings, rows)


def _outage(told: dict[str, Any]) -> str:
    soon = "" if told["ahead"] >= _DAY else f", jobs due in {told['ahead'] / 60:.0f} min"
    return _OUTAGES[told["service"]] + soon


def _percent(share: float) -> str:
    """Return a share in per cent, rounded down: what is not all is not told as 100 %.

    >>> _percent(0.9999999), _percent(1.0)
    ('99.999 %', '100 %')
    """
    return "100 %" if share == 1 else f"{int(share * 100_000) / 1000:.3f} %"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min"


def pictures(figures: Figures) -> dict[str, str]:
    late = {name: [(each["rate"], max(0.01, each[name])) for each in figures["knee"]] for name in ("p50", "p99", "max")}
    middle = [each for each in figures["outages"] if each["share"] == 0.5]
    backlog = {_outage(each): [tuple(point) for point in each["overdue"]] for each in middle}
    title = "Lateness of one partition, rows of 1 KB, over half an hour"
    return {
        "knee": charts.lines(title=title, x="jobs/s", y="seconds", series=late, log_y=True),
        "backlog": charts.lines(
            title="Jobs past due, an outage from minute 5 to 65, at half of what a partition sustains",
            x="minutes",
            y="jobs",
            series=backlog,
        ),
    }
