"""The tables and the pictures of CPU per job."""

from bench import charts
from bench.cpu.figures import BATCHED, BOTO3, DYNEIN, HTTP, INGEST, INGEST_FEW, OURS, SUBMIT, TICK, WORKER
from bench.part import Figures
from bench.tables import table

_STEPS = (SUBMIT, INGEST_FEW, INGEST, TICK, WORKER)
_WHO = (OURS, BOTO3, HTTP, DYNEIN, BATCHED)


def markdown(figures: Figures) -> str:
    """Return the tables: jobs a CPU second, Dueline against each, and where the time goes."""
    return "\n\n".join(
        [
            "Jobs a CPU second:",
            _speeds(figures),
            "Dueline's jobs a CPU second for each of theirs:",
            _against(figures),
            _note(figures),
            "Jobs a CPU second where ten threads share all processors, and hand Python's lock to and fro:",
            _shared(figures),
            "![CPU per job, by step](../bench/results/cpu-steps.svg)",
            "### Where the time goes",
            _groups(figures),
            "![CPU per job, by what it is spent on](../bench/results/cpu-profile.svg)",
            *(_top(figures, step) for step in (TICK, INGEST)),
        ]
    )


def _note(figures: Figures) -> str:
    apart = figures["apart"]
    return (
        f"Medians of {figures['rounds']} rounds. The server that answered, which is not counted, computed"
        f" {apart['server']:.0f} s; what is measured, {apart['measured']:.0f} s."
    )


def _speeds(figures: Figures) -> str:
    speeds = figures["jobs_a_second"]
    return table(("step", *_WHO), [(step, *(_whole(speeds[step].get(who)) for who in _WHO)) for step in _STEPS])


def _against(figures: Figures) -> str:
    against = figures["against"]
    others = _WHO[1:]
    return table(("step", *others), [(step, *(_ratio(against[step].get(who)) for who in others)) for step in _STEPS])


def _shared(figures: Figures) -> str:
    shared = figures["shared"]
    return table(
        ("step", OURS, BOTO3), [(step, *(_whole(each[who]) for who in (OURS, BOTO3))) for step, each in shared.items()]
    )


def _groups(figures: Figures) -> str:
    spent = microseconds(figures)
    names = list(dict.fromkeys(name for groups in spent.values() for name in groups))
    rows = [(name, *(f"{groups.get(name, 0.0):.1f}" for groups in spent.values())) for name in names]
    return table(("µs of CPU a job, by own time", *spent), rows)


def _top(figures: Figures, step: str) -> str:
    top = figures["profiles"][step][OURS]["top"]
    return table((f"{step}: the functions with the most own time", "share"), [(f"`{n}`", f"{s:.1%}") for n, s in top])


def microseconds(figures: Figures) -> dict[str, dict[str, float]]:
    """Return the microseconds of a job that go to each group, by step and contender.

    The shares are the profiler's, which slows down small functions more than large ones; the sums are as measured.
    """
    return {
        f"{step}: {who}": {
            name: share * 1_000_000 / figures["jobs_a_second"][step][who] for name, share in each["groups"].items()
        }
        for step, by_contender in figures["profiles"].items()
        for who, each in by_contender.items()
    }


def pictures(figures: Figures) -> dict[str, str]:
    """Return the pictures: CPU per job by step and contender, and by what it is spent on."""
    speeds = figures["jobs_a_second"]
    spent = {f"{step}: {who}": 1_000_000 / speeds[step][who] for step in _STEPS for who in _WHO if who in speeds[step]}
    unit = "µs of CPU a job"
    return {
        "steps": charts.bars(title="CPU per job", unit=unit, values=spent, bound=100),
        "profile": charts.stacked(title="Where the CPU of a job goes", unit=unit, values=microseconds(figures)),
    }


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
