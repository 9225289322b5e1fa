"""One short story, told again with each fault at each call, and with each process within each other's calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.acts import Act, Again, Cancel, Ingest, Reschedule, Submit, Tick
from tests.simulation.broken import Broken
from tests.simulation.mishaps import Fault, Meanwhile, Mishap, Pause, Plan
from tests.simulation.world import Scale, World

DUE = 400  # by the table's route; within the lookahead of a tick from the 210th second on
# The partition that the jobs share, of one call as they are, and one without any.
HERE, ELSEWHERE = 1, 0
FAULTS = [*Fault, Pause(31), Pause(300)]

# Nobody but itself meets the rows of keys.
KEYED = Submit([DUE, 5, DUE], keys=["one", "two", "one"])
FIRST = Submit([DUE, DUE, DUE, DUE, DUE, DUE + 1, DUE + 1.5, DUE + 250], buffered=True)
MEETING: dict[str, Act] = {
    "submit": Submit([DUE, DUE, 5]),
    "submit again": Again(1),
    "ingest": Ingest(),
    "ingest what comes again": Ingest(again=range(8)),
    "cancel": Cancel(1),
    "reschedule": Reschedule(1, DUE + 30),
    "tick": Tick(HERE),
    "tick the other": Tick(ELSEWHERE),
    "tick briefly": Tick(HERE, seconds=5),
}
ACTS = MEETING | {"submit under keys": KEYED, "reschedule to now": Reschedule(7, 0)}
OTHERS: list[list[Act]] = [
    *([act] for act in MEETING.values()),
    [Cancel(1), Tick(0), Tick(1)],
    [Reschedule(1, DUE), Ingest(), Tick(0), Tick(1)],
]
# How far the story is told before the process comes in.
SCENES = ("accepted", "half ingested", "late", "written", "seen", "sent")
# By its calls an act finds one thing in one scene and another in another: those in which most differs.
TELLING: Mapping[str, Sequence[str]] = {
    "submit": ["accepted", "seen"],
    "submit again": ["accepted", "seen"],
    "ingest": ["accepted", "late"],
    "ingest what comes again": ["accepted", "sent"],
    "cancel": ["accepted", "late", "seen"],
    "reschedule": ["late", "written"],
    "tick": ["written", "sent"],
    "tick the other": ["written"],
    "tick briefly": ["written"],
    "submit under keys": ["accepted"],
    "reschedule to now": ["written", "sent"],
}
PAGES = (1, 1000)
AND_CRASHES: Plan = {2: Fault.CRASH_AFTER}


@dataclass(frozen=True, kw_only=True)
class Call:
    """Who makes a call, the how-manieth of its calls that is, and what befalls it."""

    act: str
    scene: str
    page_rows: int
    number: int
    mishap: Mishap


def every_fault(act: str, scene: str, page_rows: int) -> Iterator[Call]:
    """Yield each fault at each call of an act."""
    yield from _at_each_call(act, scene, page_rows, FAULTS)


def every_visitor(act: str, scene: str, plan: Plan) -> Iterator[Call]:
    """Yield each other process within each call of an act. The plan is what befalls the visitor."""
    visitors = [[KEYED]] if ACTS[act] is KEYED else OTHERS
    yield from _at_each_call(act, scene, 1, [Meanwhile(others, plan) for others in visitors])


def _at_each_call(act: str, scene: str, page_rows: int, mishaps: Sequence[Mishap]) -> Iterator[Call]:
    calls = _retold(scene, page_rows, ACTS[act], {})
    for mishap in mishaps:
        for number in range(calls):
            yield Call(act=act, scene=scene, page_rows=page_rows, number=number, mishap=mishap)


def broken_by(calls: Iterable[Call]) -> list[str]:
    """Tell the story with each of these, hold it against the promises, and return which it broke by what."""
    return [f"{call}: {broken}" for call in calls if (broken := _broken_by(call))]


def _broken_by(call: Call) -> str:
    try:
        made = _retold(call.scene, call.page_rows, ACTS[call.act], {call.number: call.mishap})
    except Broken as broken:
        return str(broken)
    return "" if made > call.number else "it did not come to that call"


def _retold(scene: str, page_rows: int, act: Act, plan: Plan) -> int:
    """Tell the story, hold it against the promises, and return how many calls the act and who met it made.

    What befalls a call changes none before it: so an act makes each call that it makes when nothing befalls it.
    """
    world = _told_up_to(scene, page_rows)
    before = world.calls
    world.run(act, plan)
    made = world.calls - before
    world.calm_down()
    world.check()
    return made


def _told_up_to(scene: str, page_rows: int) -> World:
    world = World(Scale(page_rows=page_rows))
    world.run(FIRST)
    assert {id.partition.number for id in world.record.accepted} == {HERE}
    world.let_pass(250.25)
    if scene == "accepted":
        return world
    if scene == "late":
        world.run(Submit([DUE + 600], buffered=True))
        world.run(Ingest([8]))
        world.run(Tick(0))
        world.run(Tick(1))
        return world
    world.run(Ingest([0, 2, 4, 5, 6]) if scene == "half ingested" else Ingest())
    if scene in ("seen", "sent"):
        world.run(Tick(HERE), {2: Fault.CRASH_BEFORE} if scene == "seen" else {3: Fault.CRASH_BEFORE})
    return world
