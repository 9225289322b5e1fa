"""One short history with each fault at each call, and with each process between each other's calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.actions import Action, Again, Cancel, Ingest, Reschedule, Submit, Tick
from tests.simulation.faults import CallFault, Fault, Interleaved, Pause, Plan
from tests.simulation.record import Violation
from tests.simulation.world import Scale, World

DUE = 400  # by the table's route; within the lookahead of a tick from the 210th second on
# The partition that the jobs share, of one call as they are, and one without any.
HERE, ELSEWHERE = 1, 0
FAULTS = [*CallFault, Pause(31), Pause(300)]

# Only this action meets the rows of keys.
KEYED = Submit([DUE, 5, DUE], keys=["one", "two", "one"])
FIRST = Submit([DUE, DUE, DUE, DUE, DUE, DUE + 1, DUE + 1.5, DUE + 250], buffered=True)
MEETING: dict[str, Action] = {
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
ACTIONS = MEETING | {"submit under keys": KEYED, "reschedule to now": Reschedule(7, 0)}
OTHERS: list[list[Action]] = [
    *([action] for action in MEETING.values()),
    [Cancel(1), Tick(0), Tick(1)],
    [Reschedule(1, DUE), Ingest(), Tick(0), Tick(1)],
]
# How far the history has come when the action starts.
SCENES = ("accepted", "half ingested", "late", "written", "seen", "sent")
# For each action, a scene in which its calls read much.
BUSIEST_SCENE: Mapping[str, str] = {
    "submit": "accepted",
    "submit again": "seen",
    "ingest": "accepted",
    "ingest what comes again": "sent",
    "cancel": "late",
    "reschedule": "written",
    "tick": "written",
    "tick the other": "written",
    "tick briefly": "written",
    "submit under keys": "accepted",
    "reschedule to now": "sent",
}
PAGES = (1, 1000)
AND_CRASHES: Plan = {2: CallFault.CRASH_AFTER}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault at one call of an action, by number, in a scene."""

    action: str
    scene: str
    page_rows: int
    number: int
    fault: Fault


def every_fault(action: str, scene: str, page_rows: int) -> Iterator[Case]:
    """Yield each fault at each call of an action."""
    yield from _at_each_call(action, scene, page_rows, FAULTS)


def every_interleaving(action: str, scene: str, plan: Plan) -> Iterator[Case]:
    """Yield each other process before each call of an action. The plan is the other's faults."""
    others = [[KEYED]] if ACTIONS[action] is KEYED else OTHERS
    yield from _at_each_call(action, scene, 1, [Interleaved(each, plan) for each in others])


def _at_each_call(action: str, scene: str, page_rows: int, faults: Sequence[Fault]) -> Iterator[Case]:
    calls = _run(scene, page_rows, ACTIONS[action], {})
    for fault in faults:
        for number in range(calls):
            yield Case(action=action, scene=scene, page_rows=page_rows, number=number, fault=fault)


def broken_by(cases: Iterable[Case]) -> list[str]:
    """Run each case and check the promises; return the cases that broke one."""
    return [f"{case}: {violation}" for case in cases if (violation := _violation_of(case))]


def _violation_of(case: Case) -> str:
    try:
        calls = _run(case.scene, case.page_rows, ACTIONS[case.action], {case.number: case.fault})
    except Violation as violation:
        return str(violation)
    return "" if calls > case.number else "it did not come to that call"


def _run(scene: str, page_rows: int, action: Action, plan: Plan) -> int:
    """Run an action in a scene, check the promises, and return how many calls it and those between made.

    A fault changes no call before it: so the action comes to each call that it makes without faults.
    """
    world = _world_at(scene, page_rows)
    before = world.calls
    world.run(action, plan)
    calls = world.calls - before
    world.settle()
    world.check()
    return calls


def _world_at(scene: str, page_rows: int) -> World:
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
        world.run(Tick(HERE), {2: CallFault.CRASH_BEFORE} if scene == "seen" else {3: CallFault.CRASH_BEFORE})
    return world
