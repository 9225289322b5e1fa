"""The tables of docs/benchmarks.md and docs/cost.md, and README's figures, out of the stored JSON.

Each is written between marks: `<!-- cost -->` and `<!-- /cost -->`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from bench import bill
from bench.bill import Load, scheduler_bill
from bench.harness import RESULTS, Figures, Result, load
from bench.load import FLOW
from bench.payloads import USUAL
from local.template import ROOT

SCRIPTS = ("cost", "lateness", "redis", "growth", "scale", "overload")
DOCS, COST, README = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "cost.md", ROOT / "README.md"
LINE = 120
# A shop's queues: by which way so many million jobs a month are scheduled, over how many partitions.
SHOP = (
    ("`reminders`: a day ahead, one by one", 20, bill.INVOKE_ONE_BY_ONE, 1),
    ("`retries`: minutes ahead, one by one", 5, bill.INVOKE_SOON, 1),
    ("`campaigns`: a million a day, a day ahead, 100 a call", 30, bill.INVOKE_CALLS, 4),
)
WAYS = (bill.INVOKE_ONE_BY_ONE, bill.INVOKE_KEYED, bill.INVOKE_CALLS, bill.DIRECT_ONE_BY_ONE, bill.HTTP_ONE_BY_ONE)
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
            "cpu": _cpu(results["cost"].figures["cpu"]),
            **{name: tables(result) for name, result in results.items()},
        },
        COST: {name: each(results["cost"].figures) for name, each in _OF_COST.items()},
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
        # Lines of tables are not broken.
        lines = "\n".join(line if line.startswith("|") else _wrap(line) for line in section.splitlines())
        text = f"{before}<!-- {name} -->\n{lines}\n<!-- /{name} -->{after}"
    return text


def _wrap(line: str) -> str:
    return fill(line, LINE, break_long_words=False, break_on_hyphens=False)


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


def grid(heading: str, rows: Mapping[str, Figures]) -> str:
    """Return a table whose rows are figures by their names, which are its columns.

    >>> print(grid("step", {"tick": {"CPU ms": 1.234}, "submit": {"CPU ms": 1200, "jobs": "all"}}))
    | step | CPU ms | jobs |
    |---|---:|---:|
    | tick | 1.23 |  |
    | submit | 1,200 | all |
    """
    columns = list(dict.fromkeys(column for figures in rows.values() for column in figures))
    cells = ([name, *(_cell(figures.get(column, "")) for column in columns)] for name, figures in rows.items())
    return table([heading, *columns], cells)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 or not value else f"{value:.6f}"


def pick(figures: Figures, names: str) -> Figures:
    """Return some of the figures.

    >>> pick({"p50": 1.0, "on_time": 2.0, "p99": 3.0}, "p50 on_time")
    {'p50': 1.0, 'on time': 2.0}
    """
    return {name.replace("_", " "): figures[name] for name in names.split()}


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
    count = f"{len(targets) - len(missed)} of {len(targets)} targets are met."
    return f"{count} Missed: {'; '.join(each)}." if missed else count


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.5g}" if value > 10 else f"{value:.3g}"


def _headline(results: Results) -> str:
    """Return README's three figures: what jobs cost, what none cost, and how late they are."""
    cost = results["cost"].figures
    by_way, scheduler, idle = cost["by_way"], cost["by_wait"]["1"][bill.SCHEDULER], cost["idle"]
    one, keyed = (by_way[way][USUAL.name] for way in (bill.INVOKE_ONE_BY_ONE, bill.INVOKE_KEYED))
    month = idle["deployment"] + idle["queue"] + idle["partition"]
    rows = [
        (
            "a million jobs, each scheduled a day ahead",
            f"${one:.2f}; with a key ${keyed:.2f}",
            f"${scheduler:.2f} with EventBridge Scheduler",
        ),
        ("a month without a job, one queue", f"${month:.1f}", "nothing with EventBridge Scheduler"),
        ("lateness, median and p95", *_punctuality(results["lateness"].figures)),
    ]
    return "\n\n".join([table(("", "Dueline", "compare"), rows), _HOW])


_HOW = (
    "**Nothing was measured on AWS.** Costs are counted requests times the price list of us-east-1, for jobs of 1 KB at"
    " 10,000 a second. Lateness is that of a local AWS, with a tick that was missed and one that was killed."
)


def _more_expensive(cost: Figures) -> str:
    """Return under which rate, and after which wait, EventBridge Scheduler is cheaper."""
    rows = []
    for name in bill.USUAL_WAYS:
        # What is paid by the month or the tick is shared by the jobs; what is stored is paid by the day.
        few, many = (cost["by_rate"][rate][f"Dueline, {name}"] for rate in ("1", "100"))
        short, long = (cost["by_wait"][days][f"Dueline, {name}"] for days in ("1", "30"))
        scheduler, shared = cost["by_wait"]["1"][bill.SCHEDULER], (few - many) / (1 - 1 / 100)
        prices = ((rate, few - shared * (1 - 1 / rate)) for rate in range(1, bill.HIGH))
        rates = (rate for rate, price in prices if price <= scheduler_bill(Load(rate)))
        days = 1 + (scheduler - short) / (long - short) * (30 - 1)
        rows.append((name, next(rates, "any"), f"{days:.0f}" if days > 1 else "any"))
    return table(("EventBridge Scheduler is cheaper than", "under, jobs/s", "after a wait of, days"), rows)


def _punctuality(lateness: Figures) -> tuple[str, str]:
    names, whole = ("Dueline, plain consumer", "Dueline, its worker"), lateness["all"]
    plain, worker = (lateness["contenders"][name][FLOW] for name in names)
    return (
        f"{plain['p50']:.1f} s and {plain['p95']:.1f} s to a plain SQS consumer;"
        f" {1000 * worker['p50']:.0f} ms and {1000 * worker['p95']:.0f} ms to the worker",
        f"{whole['early']} early, {whole['lost']} lost",
    )


def _example(cost: Figures) -> str:
    """Return a worked example of a month's bill: a shop with three queues."""
    prices, idle = {way: cost["by_way"][way][USUAL.name] for _, _, way, _ in SHOP}, cost["idle"]
    rows = [(what, f"{count} million at {prices[way]:.2f}", count * prices[way]) for what, count, way, _ in SHOP]
    for name, count in (("queue", len(SHOP)), ("partition", sum(each[3] for each in SHOP)), ("deployment", 1)):
        what = f"{name}s, idle" if count > 1 else f"the {name}, idle"
        rows.append((what, f"{count} at {idle[name]:.2f}", count * idle[name]))
    cells = [(what, how, f"{each:.2f}") for what, how, each in rows]
    whole = ("**all**", "", f"**{sum(each for _, _, each in rows):.2f}**")
    return table(("a month, us-east-1", "$ each", "$"), [*cells, whole])


def _ways(cost: Figures) -> str:
    """Return what a million jobs, and cancels, cost by each way, from the library's own on."""
    rows = [(way, dollars(cost["by_way"][way][USUAL.name])) for way in WAYS]
    for way, call in (("invoke", "invoked"), ("direct client", "direct")):
        rows.append((f"{way}, cancels", dollars(cost["calls"][f"{call} cancel"]["$ a million"])))
    return table(("one job of 1 KB, a day ahead", "$ a million"), rows)


def _cost(figures: Figures) -> str:
    by_way, by_rate, by_wait = (figures[name] for name in ("by_way", "by_rate", "by_wait"))
    sizes = list(next(iter(by_way.values())))
    ways = [(name, *(dollars(prices.get(size, 0.0)) for size in sizes)) for name, prices in by_way.items()]
    sections = [
        "### By the way of a job",
        table(("$ a million jobs of", *sizes), ways),
        f"The row of 1 KB is packed to {figures['row_bytes'][USUAL.name]} B.",
        grid("DynamoDB write units, 1 KB", figures["write_units"]),
        grid("one job of 1 KB, due in a day", figures["calls"]),
        _prices(
            {per_second(rate): prices for rate, prices in by_rate.items()}
            # A day's wait is that of the rates.
            | {f"{days} days' wait": prices for days, prices in by_wait.items() if days != "1"}
        ),
    ]
    return "\n\n".join(sections)


def _prices(columns: Mapping[str, Mapping[str, float]]) -> str:
    names = dict.fromkeys(name for prices in columns.values() for name in prices)
    rows = ((name, *(dollars(prices.get(name, 0.0)) for prices in columns.values())) for name in names)
    return table(("$ a million jobs at", *columns), rows)


def _lateness(figures: Figures) -> str:
    contenders, whole, cancels = figures["contenders"], figures["all"], figures["cancels"]
    kinds = dict.fromkeys(kind for by_kind in contenders.values() for kind in by_kind)
    every = [each for by_kind in contenders.values() for each in by_kind.values()]
    # A column of nothing but zeros is said in a sentence.
    happened, never = (
        [name for name in ("early", "lost", "repeated") if any(each[name] for each in every) == is_some]
        for is_some in (True, False)
    )
    names = " ".join(["jobs p50 p95 p99 max", *happened])
    sections = [
        grid(f"{kind}, in seconds", {who: pick(by[kind], names) for who, by in contenders.items() if kind in by})
        for kind in kinds
    ]
    none = f"None was {' or '.join(never)}. " if never else ""
    killed = f" A tick was killed {figures['killed at']:g} s after the first one." if figures["killed at"] else ""
    late = "" if figures["in the table before the first tick"] else " Not all were in the table before the first tick."
    cancelled = (
        f"{none}Of Dueline's jobs, {cancels['200']} were cancelled with a promise, of which"
        f" {whole['after a promised cancel']} came, and {cancels['202']} without one."
        f" {whole['on time']:.3%} of the others came within 60 s.{killed}{late}"
    )
    return "\n\n".join([*sections, cancelled])


def _redis(figures: Figures) -> str:
    price, rates = figures["price"], list(figures["price"]["bills"])
    rows = {
        wait: {
            f"{who}, {per_second(rate)}": dollars(price["bills"][rate][wait][who])
            for rate in rates
            for who in ("Dueline", "Redis")
        }
        | {f"GB waiting at {per_second(rates[-1])}": gb}
        for wait, gb in price["gb"].items()
    }
    crossings = [
        f"{f'from {hours:.1f} hours on' if hours else 'at any wait'} at {per_second(rate)}"
        for rate, hours in price["crossing"].items()
    ]
    counted = (
        f"A waiting job takes {price['job_bytes']:,.0f} B, with a payload of {price['payload']} B, as"
        f" {price['waiting']:,} wait, and {price['ecpus']:.2f} ECPUs. Redis is more expensive {', '.join(crossings)}."
    )
    bills = grid("$ a million jobs", rows)
    late = "; ".join(
        f"{kind}: p50 {each['p50']:.3f} s, p99 {each['p99']:.3f} s, {each['lost']} lost, {each['repeated']} repeated"
        for kind, each in figures["late"].items()
    )
    return f"{bills}\n\n{counted} Lateness: {late}."


def _cpu(figures: Figures) -> str:
    rows = {
        step: by | {f"Dueline, to {who}": ratio for who, ratio in figures["against"][step].items()}
        for step, by in figures["jobs_a_second"].items()
    }
    return f"{grid('jobs a CPU second', rows)}\n\nMedians of {figures['rounds']} rounds."


def _growth(figures: Figures) -> str:
    """Return a line a step: it is the same for each size, or a target is missed."""
    rows = {}
    for step, by_size in figures["steps"].items():
        most = by_size[figures["sizes"][-1]]
        requests = ", ".join(f"{count:,} {kind}" if count > 1 else kind for kind, count in most["requests"].items())
        rows[step] = {
            "requests": requests,
            **pick(most, "read_units write_units"),
        }
    return grid("step", rows)


def _scale(figures: Figures) -> str:
    sizes = {
        f"{each['row_bytes']:,} B": {
            **{f"{name}, jobs/s": each[name] for name in ("ticks", "writes", "sustained")},
            "on time at 95 %": percent(each["steady"]["on_time"]),
            "all at :00": percent(each["together"]["on_time"]),
        }
        for each in figures["partition"]
    }
    steady = figures["steady"]
    late = (
        f"At {steady['rate']:.0f} jobs/s in a partition, one firing missed, of {steady['jobs']:,} jobs"
        f" {percent(steady['on_time'])} were on time (60 s), {steady['lost']} lost: p50 {steady['p50']:.2f} s, p99"
        f" {steady['p99']:.2f} s, at most {steady['max']:.2f} s."
    )
    return "\n\n".join([grid("row", sizes), late, _outages(figures["outages"])])


def _outages(outages: Sequence[Figures]) -> str:
    """Return a line for each service and how far ahead jobs are due; of each load, when jobs are on time again."""
    names, by_service = {"dynamodb": "DynamoDB", "sqs": "SQS", "scheduler": "Scheduler"}, dict[str, list[Figures]]()
    for each in outages:
        soon = "" if each["ahead"] >= 86_400 else f", jobs due in {each['ahead'] / 60:.0f} min"
        by_service.setdefault(names[each["service"]] + soon, []).append(each)
    rows = {
        name: {
            "lost": sum(run["lost"] for run in runs),
            "repeated, at most": f"{max(run['repeats'] for run in runs):.1%}",
            "latest job": f"{max(run['max'] for run in runs) / 60:.0f} min",
            **{f"on time after, {run['share']:.0%} load": _minutes(run) for run in runs},
        }
        for name, runs in by_service.items()
    }
    return grid("an hour's outage", rows)


def _minutes(outage: Figures) -> str:
    minutes = ("drained", "ingested") if outage["service"] == "dynamodb" else ("drained",)
    return ", ".join(f"{outage[what] / 60:.0f} min" for what in minutes) if outage["recovered"] else "over 6 h"


def percent(share: float) -> str:
    """Return a share in per cent, rounded down: what is not all is not shown as 100 %.

    >>> percent(0.9999999), percent(1.0)
    ('99.999 %', '100 %')
    """
    return "100 %" if share == 1 else f"{int(share * 100_000) / 1000:.3f} %"


def _overload(figures: Figures) -> str:
    rows = {
        by: pick(each, "jobs written buffered refused lost failed_ticks")
        | {"in the table after": f"{each['in_table_after'] / 60:.1f} min"}
        | {f"p99 of {whose}, s": late["p99"] for whose, late in each["late"].items() if late}
        for by, each in figures.items()
    }
    return grid("flood, at 1,000 units/s", rows)


_OF_COST = {"ways": _ways, "scheduler": _more_expensive, "example": _example}
_TABLES: dict[str, Callable[[Any], str]] = {
    "cost": _cost,
    "lateness": _lateness,
    "redis": _redis,
    "growth": _growth,
    "scale": _scale,
    "overload": _overload,
}
