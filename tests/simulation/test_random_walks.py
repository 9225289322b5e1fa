"""Any process, any fault, any order: Hypothesis looks for what no one thought of, and prints the steps to it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.simulation.world import PARTITIONS, Cancel, Event, Fault, Ingest, Meanwhile, Pause, Plan, Submit, Tick, World

JOBS = 12
MESSAGES = st.lists(st.integers(0, JOBS), max_size=6)
# Few instants, so that jobs meet in one millisecond; on both sides of the horizon and of a tick's lookahead.
DUES = st.lists(st.sampled_from([0, 100, 301, 400, 400, 400.5, 500, 700, 900, 1500]), min_size=1, max_size=4)
SECONDS = st.sampled_from([0.3, 29, 31, 60, 120, 240, 600])

PROCESSES = (
    st.builds(Tick, st.integers(0, len(PARTITIONS) - 1), st.sampled_from([5, 45, 170]))
    | st.builds(Ingest, MESSAGES, MESSAGES)
    | st.builds(Cancel, st.integers(0, JOBS))
)
CALL = st.integers(0, 12)
MISHAPS = st.sampled_from(Fault) | st.builds(Pause, SECONDS)
EVENTS: st.SearchStrategy[Event] = MISHAPS | st.builds(
    Meanwhile, st.lists(PROCESSES, min_size=1, max_size=3), st.dictionaries(CALL, MISHAPS, max_size=2)
)
PLANS: st.SearchStrategy[Plan] = st.just({}) | st.dictionaries(CALL, EVENTS, max_size=3)


class AnyOrder(RuleBasedStateMachine):
    """Processes one after another, each under a plan of what befalls its calls."""

    @initialize(page_rows=st.sampled_from([1, 2, 3, 1000]))
    def begin(self, page_rows: int) -> None:
        self.world = World(page_rows=page_rows)

    @precondition(lambda self: len(self.world.accepted) < JOBS)
    @rule(due=DUES, queue=st.sampled_from(["emails", "emails", "invoices"]), plan=PLANS)
    def submit(self, due: list[float], queue: str, plan: Plan) -> None:
        self.world.run(Submit(due, queue), plan)

    @rule(waiting=MESSAGES | st.just(list(range(JOBS))), again=st.just([]) | MESSAGES, plan=PLANS)
    def ingest(self, waiting: list[int], again: list[int], plan: Plan) -> None:
        self.world.run(Ingest(waiting, again), plan)

    @rule(partition=st.integers(0, len(PARTITIONS) - 1), seconds=st.sampled_from([5, 45, 170]), plan=PLANS)
    def tick(self, partition: int, seconds: int, plan: Plan) -> None:
        self.world.run(Tick(partition, seconds), plan)

    @rule(job=st.integers(0, JOBS), plan=PLANS)
    def cancel(self, job: int, plan: Plan) -> None:
        self.world.run(Cancel(job), plan)

    @rule(seconds=SECONDS)
    def let_pass(self, seconds: float) -> None:
        self.world.let_pass(seconds)

    @precondition(lambda self: not self.world.vanished)
    @rule(queue=st.sampled_from(["emails", "invoices"]))
    def vanish(self, queue: str) -> None:
        self.world.vanish(queue)

    @precondition(lambda self: self.world.vanished)
    @rule()
    def come_back(self) -> None:
        self.world.come_back()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.calm_down()
            self.world.check()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=800, stateful_step_count=30, deadline=None, print_blob=True)
