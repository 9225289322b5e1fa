"""One short story, told again with each fault at each call, and with each process within each other's calls."""

import pytest

from tests.simulation.acts import Act, Cancel, Ingest, Reschedule, Submit, Tick
from tests.simulation.mishaps import Fault, Meanwhile, Pause
from tests.simulation.world import Plan, Scale, World

DUE = 400  # by the table's route; within the lookahead of a tick from the 210th second on
FAULTS = [*Fault, Pause(31), Pause(300)]

# Nobody but itself meets the rows of keys.
KEYED = Submit([DUE, 5, DUE], keys=["one", "two", "one"])
MEETING: dict[str, Act] = {
    "submit": Submit([DUE, DUE, 5]),
    "ingest": Ingest(),
    "ingest what comes again": Ingest(again=range(8)),
    "cancel": Cancel(1),
    "reschedule": Reschedule(1, DUE + 30),
    "tick": Tick(0),
    "tick the other": Tick(1),
    "tick briefly": Tick(0, seconds=5),
}
ACTS = MEETING | {"submit under keys": KEYED, "reschedule to now": Reschedule(1, 0)}
OTHERS: list[list[Act]] = [
    *([act] for act in MEETING.values()),
    [Cancel(1), Tick(0), Tick(1)],
    [Reschedule(1, DUE), Ingest(), Tick(0), Tick(1)],
]
EVERY_PAGE = pytest.mark.parametrize("page_rows", [1, 1000])
# How far the story is told before the process comes in.
EVERY_SCENE = pytest.mark.parametrize("scene", ["accepted", "half ingested", "late", "written", "seen", "sent"])


def told_up_to(scene: str, page_rows: int) -> World:
    world = World(Scale(page_rows=page_rows))
    world.run(Submit([DUE, DUE, DUE, DUE, DUE, DUE + 1, DUE + 1.5, DUE + 250]))
    world.let_pass(250.25)
    if scene == "accepted":
        return world
    if scene == "late":
        world.run(Submit([DUE + 600]))
        world.run(Ingest([8]))
        world.run(Tick(0))
        world.run(Tick(1))
        return world
    world.run(Ingest([0, 2, 4, 5, 6]) if scene == "half ingested" else Ingest())
    if scene in ("seen", "sent"):
        world.run(Tick(0), {2: Fault.CRASH_BEFORE} if scene == "seen" else {3: Fault.CRASH_BEFORE})
    return world


def retold(scene: str, page_rows: int, act: Act, plan: Plan) -> int:
    """Tell the story, hold it against the promises, and return how many calls the act and who met it made.

    What befalls a call changes none before it: so an act makes each call that it makes when nothing befalls it.
    """
    world = told_up_to(scene, page_rows)
    before = world.calls
    world.run(act, plan)
    made = world.calls - before
    world.calm_down()
    world.check()
    return made


@EVERY_PAGE
@EVERY_SCENE
@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
def test_every_promise_holds_whatever_befalls_any_call(act: Act, scene: str, page_rows: int) -> None:
    calls = retold(scene, page_rows, act, {})
    for fault in FAULTS:
        for number in range(calls):
            assert retold(scene, page_rows, act, {number: fault}) > number, "it did not come to that call"


@pytest.mark.parametrize("plan", [{}, {2: Fault.CRASH_AFTER}], ids=["", "and crashes"])
@EVERY_SCENE
@pytest.mark.parametrize("act", [*MEETING.values(), KEYED], ids=[*MEETING, "submit under keys"])
def test_every_promise_holds_whoever_comes_between_any_two_calls(act: Act, scene: str, plan: Plan) -> None:
    calls = retold(scene, 1, act, {})
    for others in [[KEYED]] if act is KEYED else OTHERS:
        for number in range(calls):
            assert retold(scene, 1, act, {number: Meanwhile(others, plan)}) > number, "it did not come to that call"
