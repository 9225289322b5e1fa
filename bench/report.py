"""The tables of docs/benchmarks.md and docs/cost.md, and README's figures, out of the stored JSON.

Each is written between marks: `<!-- cost -->` and `<!-- /cost -->`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from bench.bill import total
from bench.cost_figures import (
    BATCHED,
    CHEAPEST,
    CODED,
    FREE,
    HTTP_CALLS,
    HTTP_IN_CALLS,
    HTTP_ONE_BY_ONE,
    HTTP_SINGLY,
    HTTP_SOON,
    LINGER,
    LINGERED,
    OURS,
    OURS_JSON,
    SCHEDULER,
)
from bench.harness import RESULTS, Figures, Result, load
from bench.load import FLOW
from local.template import ROOT

SCRIPTS = ("cost", "lateness", "redis", "cpu", "growth", "scale", "overload", "producers", "schedules", "cold")
DOCS, COST, README = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "cost.md", ROOT / "README.md"
LINE = 120
PERCENTS = ("p50", "p95", "p99", "max")
# A shop's queues: by which way so many million jobs a month are scheduled, over how many partitions.
SHOP = (
    ("`reminders`: a day ahead, one by one", 20, HTTP_ONE_BY_ONE, 1),
    ("`retries`: minutes ahead, one by one", 5, HTTP_SOON, 1),
    ("`campaigns`: a million a day, a day ahead, 100 a call", 30, HTTP_CALLS, 4),
)
Results = Mapping[str, Result]


def report(folder: Path = RESULTS) -> None:
    for path, text in reported(folder).items():
        path.write_text(text)


def reported(folder: Path = RESULTS) -> dict[Path, str]:
    """Return the files as they are to be, with what is stored in a folder."""
    results = {name: load(name, folder=folder) for name in SCRIPTS}
    sections = {
        DOCS: {
            "targets": f"{_targets(results)}\n{_machine(results)}",
            **{name: tables(result) for name, result in results.items()},
        },
        COST: {"example": _example(results["cost"].figures)},
        README: {"figures": _headline(results)},
    }
    return {path: marked(path.read_text(), of) for path, of in sections.items()}


def marked(text: str, sections: Mapping[str, str]) -> str:
    """Return a text whose marked sections are these. Raises KeyError for a mark that is missing.

    >>> print(marked("<!-- a -->old<!-- /a -->", {"a": "new"}))
    <!-- a -->
    new
    <!-- /a -->
    """
    for name, section in sections.items():
        between = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
        if not between.search(text):
            raise KeyError(f"there is no <!-- {name} --> with its <!-- /{name} -->")
        before, after = between.split(text, maxsplit=1)
        text = f"{before}<!-- {name} -->\n{wrapped(section)}\n<!-- /{name} -->{after}"
    return text


def wrapped(section: str) -> str:
    """Return a section with its long lines broken, but for those of tables."""
    lines = section.splitlines()
    return "\n".join(
        line if line.startswith("|") else fill(line, LINE, break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def tables(result: Result) -> str:
    return _TABLES[result.script](result.figures)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown. Columns after the first are figures, and stand to the right.

    >>> print(table(("way", "$"), [("direct", 0.04)]))
    | way | $ |
    |---|---:|
    | direct | 0.04 |
    """
    lines = (f"| {' | '.join(map(str, cells))} |" for cells in rows)
    return "\n".join([f"| {' | '.join(headings)} |", "|---|" + "---:|" * (len(headings) - 1), *lines])


def dollars(amount: float) -> str:
    """Return dollars as a table shows them.

    >>> dollars(1.2345), dollars(0.0123), dollars(0.0)
    ('1.23', '0.012', '')
    """
    if not amount:
        return ""
    return f"{amount:.2f}" if amount >= 0.1 else f"{amount:.2g}"


def per_second(rate: int | str) -> str:
    return f"{int(rate):,} job{'s' if int(rate) > 1 else ''}/s"


def _machine(results: Results) -> str:
    on, seconds = results["cost"].on, sum(result.seconds for result in results.values())
    versions = ", ".join(f"{name} {on[name]}" for name in ("Python", "boto3", "aws_lambda_powertools", "ministack"))
    return (
        f"Measured on {on['processor']}, {on['cores']} cores, {on['system']}, {versions}; commit"
        f" {on['commit']}, {on['when']}; {seconds / 60:.1f} minutes in all."
    )


def _targets(results: Results) -> str:
    """Return the targets that were missed, in bold."""
    targets = [target for result in results.values() for target in result.targets]
    missed = [target for target in targets if not target.is_met]
    each = (
        f"**{target.what}: {_number(target.got)}{target.unit}**"
        f" ({'≤' if target.at_most else '≥'} {_number(target.bound)}{target.unit})"
        for target in missed
    )
    met = f"{len(targets) - len(missed)} of {len(targets)} targets are met."
    return f"{met} Missed: {'; '.join(each)}." if missed else met


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.5g}" if value > 10 else f"{value:.3g}"


def _headline(results: Results) -> str:
    """Return README's figures: what a job costs and where others are cheaper, what waiting jobs change, and CPU."""
    cost, cpu, growth = (results[name].figures for name in ("cost", "cpu", "growth"))
    bills = {name: f"{total(bill):.2f}" for name, bill in cost["bills"].items()}
    scheduler, largest = f"{bills[SCHEDULER]} with EventBridge Scheduler", growth["sizes"][-1]
    most = max(by_size[largest]["cpu_ms"] / by_size["0"]["cpu_ms"] for by_size in growth["steps"].values())
    against = cpu["against"]["tick"]
    rows = [
        (
            "$ a million jobs, over HTTP, one by one, all in",
            f"**{bills[HTTP_SINGLY]}**",
            f"**{scheduler}**, {bills[CODED]} with Dynein's protocol as coded",
        ),
        (f"… {LINGER}", bills[LINGERED], scheduler),
        (
            "… HTTP, 100 a call, or a direct client, in tens",
            f"{bills[HTTP_IN_CALLS]}, {bills[OURS]}",
            f"{scheduler}, {bills[BATCHED]} with Dynein's protocol batched",
        ),
        (
            "to schedule, cancel, look up or tick",
            f"the same requests, bytes and capacity with {int(largest):,} jobs waiting",
            f"**{most:.2f}** of the CPU with none, at most",
        ),
        (
            "jobs handed over, a CPU second",
            f"{cpu['jobs_a_second']['tick']['Dueline']:,}",
            f"**{against['Dynein']:.0f} times** those of Dynein's protocol,"
            f" {against['Dynein batched']:.0f} times batched",
        ),
    ]
    return "\n\n".join(
        [table(("", "Dueline", "against"), rows), _still_dearer(cost), _on_time(results["lateness"].figures)]
    )


def _still_dearer(cost: Figures) -> str:
    """Return where EventBridge Scheduler is cheaper."""
    cases = []
    for way in (HTTP_SINGLY, HTTP_IN_CALLS, OURS):
        if rates := [per_second(rate) for rate, prices in cost["by_rate"].items() if prices[way] > prices[FREE]]:
            every = len(rates) == len(cost["by_rate"])
            cases.append(f"{way.removeprefix('Dueline, ')} at {'every rate' if every else ' and '.join(rates)}")
    for way in (OURS, OURS_JSON, CHEAPEST):
        if waits := [days for days, prices in cost["by_wait"].items() if prices[way] > prices[SCHEDULER]]:
            cases.append(f"{way.removeprefix('Dueline, ')} after a wait of {waits[0]} days")
    return f"EventBridge Scheduler, with its 14 million a month free, is cheaper: {'; '.join(cases)}."


def _on_time(lateness: Figures) -> str:
    names, whole = ("Dueline, plain consumer", "Dueline, its worker"), lateness["all"]
    plain, worker = (lateness["contenders"][name][FLOW] for name in names)
    return (
        "In real time, with a tick that was missed and one that was killed, a plain SQS consumer has a job"
        f" {plain['p50']:.1f} s after it is due (median; p95 {plain['p95']:.1f} s), the worker after"
        f" {1000 * worker['p50']:.0f} ms; {whole['early']} early, {whole['lost']} lost."
    )


def _example(cost: Figures) -> str:
    """Return a worked example of a month's bill: a shop with three queues."""
    prices, idle = {way: cost["by_way"][way]["1 KB"] for _, _, way, _ in SHOP}, cost["idle"]
    rows = [(what, f"{count} million at {prices[way]:.2f}", count * prices[way]) for what, count, way, _ in SHOP]
    for name, count in (("queue", len(SHOP)), ("partition", sum(each[3] for each in SHOP)), ("deployment", 1)):
        what = f"{name}s, idle" if count > 1 else f"the {name}, idle"
        rows.append((what, f"{count} at {idle[name]:.2f}", count * idle[name]))
    cells = [(what, how, f"{each:.2f}") for what, how, each in rows]
    whole = ("**all**", "", f"**{sum(each for _, _, each in rows):.2f}**")
    return table(("a month, us-east-1", "$ each", "$"), [*cells, whole])


def _cost(figures: Figures) -> str:
    by_way, rates, packed = (figures[name] for name in ("by_way", "by_rate", "row_bytes"))
    sizes = list(next(iter(by_way.values())))
    ways = [(name, *(dollars(prices.get(size, 0.0)) for size in sizes)) for name, prices in by_way.items()]
    partition, queue, deployment = (dollars(figures["idle"][name]) for name in ("partition", "queue", "deployment"))
    together = (
        f"The row of 1 KB is packed to {packed['1 KB']} B, that of 1 KB of JSON to {packed['1 KB of JSON']} B. Of"
        f" callers that linger, a request carries {figures['together']} jobs."
    )
    idle = (
        f"$ a month: a partition {partition} (its schedule and ticks), a queue {queue} (its metrics and alarms), the"
        f" deployment {deployment} (its own, and the polls of its inbound queue)."
    )
    by_rate = [(name, *(dollars(prices[name]) for prices in rates.values())) for name in next(iter(rates.values()))]
    sections = {
        "By the way of a job": "\n\n".join(
            [
                table(("$ a million jobs of", *sizes), ways),
                together,
                table(("$ a million jobs at", *map(per_second, rates)), by_rate),
            ]
        ),
        "With nothing to do": idle,
        "Where Dueline is dearer": table(("Dueline's way, $", "cheaper there, $"), _dearer(figures)),
    }
    return "\n\n".join(f"### {heading}\n\n{section}" for heading, section in sections.items())


def _dearer(figures: Figures) -> list[tuple[str, str]]:
    """Return where a way of ours is dearer than another that can do it."""
    by_rate = {per_second(rate): prices for rate, prices in figures["by_rate"].items()}
    by_wait = {f"{days} days' wait": prices for days, prices in figures["by_wait"].items() if days != "1"}
    cases: dict[str, list[str]] = {}
    for case, prices in (by_rate | by_wait).items():
        for way in prices:
            cheaper = [
                f"{other} {dollars(price)}"
                for other, price in prices.items()
                if not other.startswith("Dueline") and "provisioned" not in other and price < prices[way]
            ]
            if way.startswith("Dueline") and "provisioned" not in way and cheaper:
                cases.setdefault(way, []).append(f"{case} {dollars(prices[way])}: {', '.join(cheaper)}")
    return [(way, "; ".join(each)) for way, each in cases.items()]


def _late(heading: str, rows: Mapping[str, Figures]) -> str:
    headings = (heading, "jobs", *(f"{name}, s" for name in PERCENTS), "early", "lost", "repeated")
    counts = ("early", "lost", "repeated")
    return table(
        headings,
        (
            (name, each["jobs"], *(f"{each[percent]:.3f}" for percent in PERCENTS), *(each[count] for count in counts))
            for name, each in rows.items()
        ),
    )


def _lateness(figures: Figures) -> str:
    contenders, whole, cancels = figures["contenders"], figures["all"], figures["cancels"]
    kinds = dict.fromkeys(kind for by_kind in contenders.values() for kind in by_kind)
    sections = [
        _late(f"{kind}, by whom", {name: by_kind[kind] for name, by_kind in contenders.items() if kind in by_kind})
        for kind in kinds
    ]
    killed = f" A tick was killed {figures['killed at']:g} s after the first one." if figures["killed at"] else ""
    late = "" if figures["in the table before the first tick"] else " Not all were in the table before the first tick."
    cancelled = (
        f"Of Dueline's jobs, {cancels['200']} were cancelled with a promise (200), of which"
        f" {whole['after a promised cancel']} came; {cancels['202']} without one (202), which may come or not."
        f" {whole['on time']:.3%} of the others came within 60 s.{killed}{late}"
    )
    return "\n\n".join([*sections, cancelled])


def _redis(figures: Figures) -> str:
    price, rates = figures["price"], list(figures["price"]["bills"])
    headings = [f"{name}, {per_second(rate)}" for rate in rates for name in price["bills"][rate]["1 hour"]]
    rows = [
        (wait, *(dollars(amount) for rate in rates for amount in price["bills"][rate][wait].values()), f"{gb:,.0f}")
        for wait, gb in price["gb"].items()
    ]
    crossings = [
        f"{f'from {hours:.1f} hours on' if hours else 'at any wait'} at {per_second(rate)}"
        for rate, hours in price["crossing"].items()
    ]
    counted = (
        f"A waiting job takes {price['job_bytes']:,.0f} B of memory, with a payload of {price['payload']} B, as"
        f" {price['waiting']:,} wait, and {price['ecpus']:.2f} ECPUs in all. Redis is dearer {', '.join(crossings)}."
    )
    bills = table(("$ a million jobs", *headings, f"GB waiting at {per_second(rates[-1])}"), rows)
    late = "; ".join(
        f"{kind}: p50 {each['p50']:.3f} s, p99 {each['p99']:.3f} s, {each['lost']} lost, {each['repeated']} repeated"
        for kind, each in figures["late"].items()
    )
    return f"{bills}\n\n{counted} Its jobs are late by ({late})."


def _cpu(figures: Figures) -> str:
    speeds, against = figures["jobs_a_second"], figures["against"]
    others = ("Dynein", "Dynein batched")
    rows = [
        (
            step,
            *(f"{by[who]:,.0f}" if who in by else "" for who in ("Dueline", *others)),
            *(f"{against[step][who]:.2f}" if who in against[step] else "" for who in others),
        )
        for step, by in speeds.items()
    ]
    headings = ("jobs a CPU second", "Dueline", *others, *(f"Dueline, to {who}" for who in others))
    return f"{table(headings, rows)}\n\nMedians of {figures['rounds']} rounds."


def _growth(figures: Figures) -> str:
    """Return a line a step: its requests are the same for each size, or a target is missed."""
    sizes, rows = figures["sizes"], []
    for step, by_size in figures["steps"].items():
        last, none = by_size[sizes[-1]], by_size[sizes[0]]
        requests = ", ".join(f"{count:,} {kind}" if count > 1 else kind for kind, count in last["requests"].items())
        counts = (f"{last[what]:,.0f}" for what in ("bytes_out", "bytes_in", "read_units", "write_units"))
        cpu = (f"{by_size[size]['cpu_ms']:.2f}" for size in sizes)
        rows.append((step, requests, *counts, *cpu, f"{last['cpu_ms'] / none['cpu_ms']:.2f}"))
    cpu_headings = (f"CPU ms, {int(size):,} waiting" for size in sizes)
    headings = ("step", "requests", "bytes out", "bytes in", "read units", "write units")
    return table((*headings, *cpu_headings, "most to none"), rows)


def _scale(figures: Figures) -> str:
    sizes = [
        (
            f"{each['row_bytes']:,} B",
            *(f"{each[name]:,.0f}" for name in ("ticks", "writes", "sustained")),
            *(percent(each[name]["on_time"]) for name in ("steady", "together")),
        )
        for each in figures["partition"]
    ]
    rates = [
        (
            f"{each['total']:,}",
            each["partitions"],
            each["ingest_functions"],
            f"{each['ramp_minutes']:.0f} min",
            *(f"{each[name]:.2f} s" for name in ("p50", "p99", "max")),
            percent(each["on_time"]),
            f"{each['jobs']:,}",
            each["lost"],
        )
        for each in figures["rates"]
    ]
    of_sizes = ("row", "its ticks send", "its key takes", "sustained, jobs/s", "on time at 95 %", "all at :00")
    of_rates = (
        *("jobs/s", "partitions", "ingest functions, if all is buffered", "a new table's ramp"),
        *("p50", "p99", "max", "on time (60 s)", "jobs simulated", "lost"),
    )
    return "\n\n".join([table(of_sizes, sizes), table(of_rates, rates), _outages(figures["outages"])])


def _outages(outages: Sequence[Figures]) -> str:
    """Return a line for each service and how far ahead jobs are due; of each load, when jobs are on time again."""
    names = {"dynamodb": "DynamoDB", "sqs": "SQS", "scheduler": "Scheduler"}
    loads = dict.fromkeys(each["share"] for each in outages)
    by_service: dict[tuple[str, float], dict[float, Figures]] = {}
    for each in outages:
        by_service.setdefault((each["service"], each["ahead"]), {})[each["share"]] = each
    rows = []
    for (service, ahead), by_load in by_service.items():
        minutes = (", ".join(_minutes(by_load[load], service)) if load in by_load else "" for load in loads)
        soon = "" if ahead >= 86_400 else f", jobs due in {ahead / 60:.0f} min"
        lost, repeated = (f"{max(each[name] for each in by_load.values())}" for name in ("lost", "repeats"))
        latest = max(each["max"] for each in by_load.values())
        rows.append((names[service] + soon, lost, f"{float(repeated):.1%}", f"{latest / 60:.0f} min", *minutes))
    loads_of = (f"on time, and all ingested, after, {load:.0%} load" for load in loads)
    return table(("an hour's outage", "lost", "repeated, at most", "latest job", *loads_of), rows)


def _minutes(outage: Figures, service: str) -> list[str]:
    drained = f"{outage['drained'] / 60:.0f} min" if outage["calm"] else "over 6 h"
    return [drained, *([f"{outage['ingested'] / 60:.0f} min"] if service == "dynamodb" else [])]


def percent(share: float) -> str:
    """Return a share in per cent, rounded down: what is not all is not shown as 100 %.

    >>> percent(0.9999999), percent(1.0)
    ('99.999 %', '100 %')
    """
    return "100 %" if share == 1 else f"{int(share * 100_000) / 1000:.3f} %"


def _overload(figures: Figures) -> str:
    counts = ("jobs", "written", "buffered", "refused", "lost", "failed_ticks")
    whose = list(figures["HTTP"]["late"])
    rows = [
        (
            by,
            *(f"{each[name]:,}" for name in counts),
            f"{each['in_table_after'] / 60:.1f} min",
            *(f"{each['late'][name]['p99']:.2f} s" if each["late"].get(name) else "" for name in whose),
        )
        for by, each in figures.items()
    ]
    taken = ("jobs", "written at once", "buffered", "refused", "lost", "ticks that failed", "all in the table after")
    return table(("flood, at 1,000 units/s", *taken, *(f"p99 of {name}" for name in whose)), rows)


def _producers(figures: Figures) -> str:
    rates = ", ".join(f"by {way} {rate:,.0f}" for way, rate in figures["a_second"].items())
    singly = ", ".join(f"one that {way} {1000 * each:.1f} ms" for way, each in figures["singly"].items())
    return f"Jobs a second, of {figures['jobs']:,}: {rates}. One job by a direct client, at the median: {singly}."


def _schedules(figures: Figures) -> str:
    rows = [
        (
            how,
            f"{each['runs']:,.0f}",
            *(f"{each[name]:.3g}" if each[name] >= 0.001 else f"{each[name]:.6f}" for name in names),
            f"{each['among many'] / each['scheduler']:.2f}",
        )
        for names in [("alone", "among many", "scheduler", "free")]
        for how, each in figures["months"].items()
    ]
    scheduler = (
        "EventBridge Scheduler, $",
        "… within its free 14 million, $",
        "among many, to EventBridge Scheduler's",
    )
    headings = ("a schedule, a month", "runs", "Dueline alone, $", "Dueline among many, $", *scheduler)
    return f"{table(headings, rows)}\n\nThe planner itself, with no schedule: ${figures['idle']:.2f} a month."


def _cold(figures: Figures) -> str:
    shares = list(next(iter(figures["functions"].values()))["shares"])
    rows = [
        (
            name,
            *(f"{each[time]:.0f}" for time in ("wall", "cpu", "compiled")),
            *(f"{each['shares'][share]:.0f}" for share in shares),
            f"{each['clients']:.0f} ({', '.join(each['made'])})",
            *(f"{each['memory']:.0f}", each["modules"], each["ours"]),
        )
        for name, each in figures["functions"].items()
    ]
    headings = ("function", "wall ms", "CPU ms", "CPU ms, if compiled", *shares)
    users = "; ".join(
        f"`from dueline import {name}` takes {each['wall']:.0f} ms, {each['memory']:.0f} MB and {each['modules']}"
        f" modules, of them ours {each['ours']}"
        for name, each in figures["users"].items()
    )
    cold = table((*headings, "clients made", "memory MB", "modules", "of them ours"), rows)
    return f"{cold}\n\nMedians of {figures['rounds']} rounds. {users}."


_TABLES: dict[str, Callable[[Any], str]] = {
    "cost": _cost,
    "lateness": _lateness,
    "redis": _redis,
    "cpu": _cpu,
    "growth": _growth,
    "scale": _scale,
    "overload": _overload,
    "producers": _producers,
    "schedules": _schedules,
    "cold": _cold,
}
