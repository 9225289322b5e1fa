"""Tell growth and herds in tables, and draw them."""

from collections.abc import Iterator, Mapping

from bench import charts
from bench.growth.measure import cpu_of_a_job_ms, seconds_of
from bench.part import Figures
from bench.tables import table

_STEPS = (
    "step",
    "waiting",
    "requests",
    "bytes out",
    "bytes in",
    "read units",
    "write units",
    "CPU, ms",
    "CPU, to none",
)
_HERDS = (
    "partitions",
    "ticks (with the lease)",
    "requests",
    "read units",
    "write units",
    "our CPU, s",
    "first sent, s",
    "last sent, s",
    "sent in, s",
    "late p50, s",
    "p99",
    "max",
    "delivered",
    "lost / twice / early",
)


def markdown(figures: Figures) -> str:
    """Return the tables of both, in Markdown."""
    jobs, latency = figures["herds"][0]["jobs"], figures["latency"]
    return "\n\n".join(
        [
            "### What a step costs by how many jobs wait",
            table(_STEPS, _steps(figures)),
            "![CPU of each step by how many jobs wait](../bench/results/growth-cpu.svg)",
            "How fast the engine itself answers, in ms, our client's side included:",
            table(("request", *(f"{int(size):,} waiting" for size in figures["sizes"])), _engine(figures)),
            f"### {jobs:,} jobs of one queue due in the same second",
            f"In virtual time, with a SendMessageBatch of {1000 * latency['send']:g} ms, an UpdateItem of"
            f" {1000 * latency['write']:g} ms, a Query of 1 MB of {1000 * latency['page']:g} ms, and"
            f" {1000 * latency['job_cpu']:g} ms of CPU a job (this run measured {cpu_of_a_job_ms(figures):.2f}) on"
            f" {latency['vcpu']:.2f} of a processor. Seconds count from the herd's due time.",
            table(_HERDS, map(_herd, figures["herds"])),
            "![Jobs delivered over time, by partitions](../bench/results/growth-herd.svg)",
        ]
    )


def _steps(figures: Figures) -> Iterator[tuple[object, ...]]:
    for step, by_size in figures["steps"].items():
        none = by_size[figures["sizes"][0]]["cpu_ms"]
        for size in figures["sizes"]:
            cost = by_size[size]
            yield (
                step,
                f"{int(size):,}",
                _requests(cost["requests"]),
                *(f"{cost[what]:,.4g}" if "units" in what else f"{cost[what]:,}" for what in _COUNTED),
                f"{cost['cpu_ms']:.2f}",
                f"{cost['cpu_ms'] / none:.2f}",
            )


_COUNTED = ("bytes_out", "bytes_in", "read_units", "write_units")


def _requests(requests: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" if count > 1 else kind for kind, count in requests.items())


def _engine(figures: Figures) -> Iterator[tuple[object, ...]]:
    for request, by_size in figures["engine_ms"].items():
        yield request, *(f"{by_size[size]:.2f}" for size in figures["sizes"])


def _herd(herd: Figures) -> tuple[object, ...]:
    late = herd["lateness"]
    return (
        herd["partitions"],
        f"{herd['ticks']} ({herd['ticks_with_the_lease']})",
        f"{sum(herd['requests'].values()):,}",
        f"{herd['read_units']:,}",
        f"{herd['write_units']:,}",
        f"{herd['cpu_seconds']:.1f}",
        f"{herd['first_sent']:.0f}",
        f"{herd['last_sent']:.0f}",
        f"{seconds_of(herd):.0f}",
        *(f"{late[name]:.1f}" for name in ("p50", "p99", "max")),
        f"{herd['delivered']:,}",
        f"{herd['lost']} / {herd['repeated']} / {herd['early']}",
    )


def pictures(figures: Figures) -> dict[str, str]:
    """Return the pictures."""
    # None has no place on a logarithmic axis: it stands at one.
    cpu = {
        step: [(max(1, int(size)), by_size[size]["cpu_ms"]) for size in figures["sizes"]]
        for step, by_size in figures["steps"].items()
    }
    herds = {
        f"in {herd['partitions']}": [(second, jobs / 1000) for second, jobs in herd["over_time"]]
        for herd in figures["herds"]
    }
    return {
        "cpu": charts.lines(
            title="CPU of a step", x="jobs waiting (none at 1)", y="CPU, ms", series=cpu, log_x=True, log_y=True
        ),
        "herd": charts.lines(
            title="A herd delivered, by partitions", x="seconds after due", y="thousand jobs", series=herds
        ),
    }
