"""The figures as tables, and as pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench import charts
from bench.cost.figures import BATCHED, CODED, HTTP_IN_CALLS, HTTP_SINGLY, OURS, SCHEDULER, dearer, per_second
from bench.cost.payloads import JSON, USUAL
from bench.cost.ways import total
from bench.part import Figures
from bench.tables import table

BILLS = "bills"
RATES = "rates"
# The longest last, so that the legend covers none.
_DRAWN = (OURS, SCHEDULER, BATCHED, HTTP_SINGLY, CODED)


def markdown(figures: Figures) -> str:
    """Return the tables."""
    return "\n\n".join(
        [
            "### By the way of a job\n\n" + _by_way(figures),
            "### Against others, by rate\n\n" + _by_rate(figures),
            f"![What a million jobs cost, by rate](../bench/results/cost-{RATES}.svg)",
            _shapes(figures),
            "### Where the money goes\n\n" + _bills(figures),
            f"![What a million jobs cost, by what is paid for](../bench/results/cost-{BILLS}.svg)",
            "### By the wait\n\n" + _by_wait(figures),
            "### With nothing to do\n\n" + _idle(figures),
            "### Where Dueline is dearer\n\n" + _dearer(figures),
            "### What was counted\n\n" + _counted(figures),
        ]
    )


def pictures(figures: Figures) -> dict[str, str]:
    """Return the pictures."""
    told = next(iter(figures["by_rate"].values()))
    names = [name for name in told if "provisioned" not in name and name != HTTP_IN_CALLS]
    rates = {name: _points(figures, name) for name in names}
    bills = {name: figures["bills"][name] for name in _DRAWN}
    return {
        BILLS: charts.stacked(title="A million jobs of 1 KB, a day's wait, 10,000 jobs/s", unit="$", values=bills),
        RATES: charts.lines(
            title="A million jobs of 1 KB, a day's wait", x="jobs a second", y="$", series=rates, log_x=True
        ),
    }


def _by_way(figures: Figures) -> str:
    sizes = list(next(iter(figures["by_way"].values())))
    rows = [(name, *(_dollars(prices.get(size, 0.0)) for size in sizes)) for name, prices in figures["by_way"].items()]
    usual, of_json = (figures["row_bytes"][size.name] for size in (USUAL, JSON))
    packed = f"The row of 1 KB is packed to {usual} B, and that of {JSON} to {of_json} B."
    together = f"Of callers that linger, a request carries {figures['together']} jobs."
    return f"{table(('$ a million jobs of', *sizes), rows)}\n\n{packed} {together}"


def _by_rate(figures: Figures) -> str:
    rates = figures["by_rate"]
    names = list(next(iter(rates.values())))
    rows = [(name, *(_dollars(prices[name]) for prices in rates.values())) for name in names]
    return table(("$ a million jobs at", *map(per_second, rates)), rows)


def _shapes(figures: Figures) -> str:
    told = [
        (per_second(rate), *(f"{shape[name]:,}" for name in ("partitions", "ticked", "polled")))
        for rate, shape in figures["shapes"].items()
    ]
    return table(("jobs/s", "partitions", "jobs a tick", "jobs a poll of Dynein's"), told)


def _bills(figures: Figures) -> str:
    bills = figures["bills"]
    names = list(dict.fromkeys(line for bill in bills.values() for line in bill))
    rows = [(line, *(_dollars(bill.get(line, 0.0)) for bill in bills.values())) for line in names]
    rows.append(("**all**", *(f"**{_dollars(total(bill))}**" for bill in bills.values())))
    return table(("$ a million jobs", *bills), rows)


def _by_wait(figures: Figures) -> str:
    waits = figures["by_wait"]
    names = list(next(iter(waits.values())))
    rows = [(name, *(_dollars(prices[name]) for prices in waits.values())) for name in names]
    return table(("$ a million jobs that wait", *(f"{days} days" if days != "1" else "a day" for days in waits)), rows)


def _idle(figures: Figures) -> str:
    idle = figures["idle"]
    rows = [
        ("a partition: its schedule and its ticks", _dollars(idle["partition"])),
        ("a queue: its metrics and alarms", _dollars(idle["queue"])),
        ("the deployment: its own, and the polls of its inbound queue", _dollars(idle["deployment"])),
    ]
    return table(("idle", "$ a month"), rows)


def _dearer(figures: Figures) -> str:
    cases: dict[tuple[str, str], list[str]] = {}
    for case, other, ours, theirs in dearer(figures):
        cases.setdefault((case, _dollars(ours)), []).append(f"{other}: {_dollars(theirs)}")
    rows = [(case, ours, "; ".join(others)) for (case, ours), others in cases.items()]
    return table(("case", "Dueline, $", "cheaper there, $"), rows)


def _counted(figures: Figures) -> str:
    rows = [
        (name.replace("|", ", "), step["jobs"], _calls(step["calls"]), *_numbers(step))
        for name, step in figures["counted"].items()
        if name.endswith("|1 KB")
    ]
    headings = ("step, 1 KB", "jobs", "requests", "write units", "read units", "KB out", "KB in", "B logged")
    return table(headings, rows)


def _numbers(step: Mapping[str, Any]) -> Sequence[str]:
    kilobytes = (f"{step[name] / 1000:.1f}" for name in ("bytes_out", "bytes_in"))
    return [f"{step['writes']:g}", f"{step['reads']:g}", *kilobytes, str(step["logged"])]


def _calls(calls: Mapping[str, int]) -> str:
    return ", ".join(f"{times:,} {operation}" for operation, times in calls.items())


def _points(figures: Figures, name: str) -> list[tuple[float, float]]:
    return [(float(rate), prices[name]) for rate, prices in figures["by_rate"].items()]


def _dollars(amount: float) -> str:
    """Return dollars as a table shows them.

    >>> _dollars(1.2345), _dollars(0.0123), _dollars(0.0)
    ('1.23', '0.012', '')
    """
    if not amount:
        return ""
    return f"{amount:.2f}" if amount >= 0.1 else f"{amount:.2g}"
