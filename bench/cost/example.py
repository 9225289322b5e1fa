"""A worked example of a month's bill, for docs/cost.md: a shop with three queues."""

from dataclasses import dataclass

from bench.cost.figures import HTTP_ONE_BY_ONE
from bench.cost.payloads import USUAL
from bench.part import Figures
from bench.tables import table

_CALLS = "HTTP, 100 a call"
_SOON = "HTTP, due within 15 min, one by one"


@dataclass(frozen=True, kw_only=True)
class Use:
    """What one queue is asked for in a month, and by which of the ways that are counted."""

    queue: str
    what: str
    millions: int
    way: str
    partitions: int


SHOP = (
    Use(queue="reminders", what="a day ahead, one by one", millions=20, way=HTTP_ONE_BY_ONE, partitions=1),
    Use(queue="retries", what="minutes ahead, one by one", millions=5, way=_SOON, partitions=1),
    Use(queue="campaigns", what="a million a day, a day ahead, 100 a call", millions=30, way=_CALLS, partitions=4),
)


def example(figures: Figures) -> str:
    """Return a table: what each queue's jobs cost, what is paid without any, and all together."""
    prices = {use.way: figures["by_way"][use.way][USUAL.name] for use in SHOP}
    jobs = [
        (
            f"`{use.queue}`: {use.what}",
            f"{use.millions} million at {prices[use.way]:.2f}",
            use.millions * prices[use.way],
        )
        for use in SHOP
    ]
    idle = [
        (f"{name}s, idle" if count > 1 else f"the {name}, idle", f"{count} at {figures['idle'][name]:.2f}", each)
        for name, count in (("queue", len(SHOP)), ("partition", sum(use.partitions for use in SHOP)), ("deployment", 1))
        for each in [count * figures["idle"][name]]
    ]
    total = sum(each for _, _, each in (*jobs, *idle))
    rows = [(what, how, f"{each:.2f}") for what, how, each in (*jobs, *idle)]
    return table(("a month, us-east-1", "$ each", "$"), [*rows, ("**all**", "", f"**{total:.2f}**")])
