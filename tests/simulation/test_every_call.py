"""One short story, told again with each fault at each call, and with each process within each other's calls."""

import pytest

from tests.simulation.world import Cancel, Fault, Ingest, Meanwhile, Pause, Submit, Tick, World

DUE = 400  # by the table's route; within the lookahead of a tick from the 160th second on
CALLS = 14
FAULTS = [*Fault, Pause(31), Pause(300)]

PROCESSES = {
    "submit": Submit([DUE, DUE, 5]),
    "ingest": Ingest(),
    "ingest what comes again": Ingest(again=range(8)),
    "cancel": Cancel(1),
    "tick": Tick(0),
    "tick the other": Tick(1),
    "tick briefly": Tick(0, seconds=5),
}
OTHERS = [*([process] for process in PROCESSES.values()), [Cancel(1), Tick(0), Tick(1)]]
EVERY_PROCESS = pytest.mark.parametrize("process", PROCESSES.values(), ids=list(PROCESSES))
EVERY_PAGE = pytest.mark.parametrize("page_rows", [1, 1000])
# How far the story is told before the process comes in.
EVERY_SCENE = pytest.mark.parametrize("scene", ["accepted", "half ingested", "late", "written", "seen", "sent"])


def told_up_to(scene, page_rows):
    world = World(page_rows=page_rows)
    world.run(Submit([DUE, DUE, DUE, DUE, DUE, DUE + 1, DUE + 1.5, DUE + 300]))
    world.let_pass(200.25)
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


def retold(scene, page_rows, process, plan):
    world = told_up_to(scene, page_rows)
    before = world.calls
    world.run(process, plan)
    made = world.calls - before
    world.calm_down()
    world.check()
    return made


@EVERY_PAGE
@EVERY_SCENE
@EVERY_PROCESS
def test_every_promise_holds_whatever_befalls_any_call(process, scene, page_rows):
    for fault in FAULTS:
        for number in range(CALLS):
            if retold(scene, page_rows, process, {number: fault}) < number:
                break


@pytest.mark.parametrize("plan", [{}, {2: Fault.CRASH_AFTER}], ids=["", "and crashes"])
@EVERY_SCENE
@EVERY_PROCESS
def test_every_promise_holds_whoever_comes_between_any_two_calls(process, scene, plan):
    for others in OTHERS:
        for number in range(CALLS):
            if retold(scene, 1, process, {number: Meanwhile(others, plan)}) < number:
                break
