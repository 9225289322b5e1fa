"""What came out, as tables and as a picture."""

from bench.charts import stacked
from bench.cold.shares import SHARES
from bench.part import Figures
from bench.tables import table

_PICTURE = "shares"


def markdown(figures: Figures) -> str:
    functions, users = figures["functions"], figures["users"]
    shares = ("function", "wall ms", "CPU ms", *SHARES, "clients made", "memory MB", "modules", "of them ours")
    rows = [_row(name, told) for name, told in functions.items()]
    clients = [(name, ", ".join(told["made"]), f"{told['compiled']:.0f}") for name, told in functions.items()]
    imports = [(f"`from dueline import {name}`", *_sizes(told)) for name, told in users.items()]
    return "\n\n".join(
        [
            f"Medians of {figures['rounds']} rounds, in milliseconds:",
            table(shares, rows),
            f"![What a cold start is made of](../bench/results/cold-{_PICTURE}.svg)",
            table(("function", "clients that it makes as it starts", "CPU ms, if its sources came compiled"), clients),
            table(("import", "wall ms", "CPU ms", "memory MB", "modules", "of them ours"), imports),
        ]
    )


def _row(name: str, told: Figures) -> tuple[str, ...]:
    shares = [f"{told['shares'][share]:.0f}" for share in SHARES]
    wall, cpu, *sizes = _sizes(told)
    return name, wall, cpu, *shares, f"{told['clients']:.0f}", *sizes


def _sizes(told: Figures) -> tuple[str, ...]:
    times = f"{told['wall']:.0f}", f"{told['cpu']:.0f}", f"{told['memory']:.0f}"
    return *times, str(told["modules"]), str(told["ours"])


def pictures(figures: Figures) -> dict[str, str]:
    values = {name: {**told["shares"], "clients made": told["clients"]} for name, told in figures["functions"].items()}
    return {_PICTURE: stacked(title="What a cold start is made of", unit="milliseconds", values=values)}
