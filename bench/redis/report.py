"""The figures as tables."""

from collections.abc import Mapping
from typing import Any

from bench.cost.figures import per_second
from bench.part import Figures
from bench.tables import table

_LATE = ("p50", "p95", "p99", "max")


def markdown(figures: Figures) -> str:
    """Return the tables."""
    return "\n\n".join(
        [
            _cpu(figures["cpu"]),
            _late(figures["late"]),
            _killed(figures),
            _worker(figures["worker killed"]),
            _counted(figures["price"]),
            _bills(figures["price"]),
        ]
    )


def _cpu(told: Mapping[str, Any]) -> str:
    rows = []
    for who, steps in told["us"].items():
        whole = sum(steps.values())
        rows.append((who, *(f"{1e6 / each:,.0f}" for each in (*steps.values(), whole))))
    headings = ("jobs a CPU second", "producer, in tens", "in between", "worker", "the whole way")
    return (
        f"{table(headings, rows)}\n\nIn between are Dueline's tick, and the whole of Redis's server. Medians"
        f" of {told['rounds']} rounds in turns: for a second of CPU Redis does"
        f" {told['of Dueline']:.1f} times Dueline's jobs."
    )


def _late(told: Mapping[str, Any]) -> str:
    rows = [
        (kind, each["jobs"], *(f"{each[name]:.3f}" for name in _LATE), each["early"], each["lost"], each["repeated"])
        for kind, each in told.items()
    ]
    return table(("Redis, four workers", "jobs", *(f"{name}, s" for name in _LATE), "early", "lost", "repeated"), rows)


def _killed(figures: Figures) -> str:
    rows = [
        (f"{what}, `{kill['appendfsync']}`", kill["jobs a second"], *told.values())
        for kill in figures["kills"]
        for what, told in kill["killed"].items()
    ]
    accepted = "accepted a second, one producer"
    return table(("killed", accepted, "accepted", "of these gone", "oldest gone, s", "begun, and come again"), rows)


def _worker(told: Mapping[str, Any]) -> str:
    return (
        f"One of two workers killed in the midst of {told['jobs']} jobs: {told['lost']} lost, {told['repeated']} begun"
        f" twice, the last {told['last after']:.1f} s after the kill, with a reclaim time of 2 s."
    )


def _counted(told: Mapping[str, Any]) -> str:
    return (
        f"A waiting job takes {told['job_bytes']:,.0f} B of memory, with a payload of {told['payload']} B, as"
        f" {told['waiting']:,} wait; scheduled, claimed and acknowledged it takes {told['ecpus']:.2f} ECPUs."
    )


def _bills(told: Mapping[str, Any]) -> str:
    rates = list(told["bills"])
    names = list(next(iter(told["bills"][rates[0]].values())))
    headings = [f"{name}, {per_second(rate)}" for rate in rates for name in names]
    rows = [
        (wait, *(f"{told['bills'][rate][wait][name]:.2f}" for rate in rates for name in names), f"{gb:,.0f}")
        for wait, gb in told["gb"].items()
    ]
    crossings = ", ".join(f"{_crossing(told['crossing'][rate])} at {per_second(rate)}" for rate in rates)
    waiting = f"GB waiting at {per_second(rates[-1])}"
    return f"{table(('$ a million jobs', *headings, waiting), rows)}\n\nRedis is dearer {crossings}."


def _crossing(hours: float) -> str:
    """Return in words from which wait on Redis is dearer.

    >>> _crossing(9.5), _crossing(0.0)
    ('from 9.5 hours on', 'at any wait')
    """
    return f"from {hours:.1f} hours on" if hours else "at any wait"
