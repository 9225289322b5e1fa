"""What is asked for where a read may not show it: whether a job was moved, and the row of one that took its place.

Whoever asks is told how it is: the answer waits until a move is over. One that gets no answer leaves the job for later,
as one that cannot be sent. So a row that says that a move is asked, and no more, tells nobody anything, and is put
with the move in one step.
"""

from tests.simulation.model.ingest import Ingest
from tests.simulation.model.move import ASKED, AWAITED, MoveRules
from tests.simulation.model.store import Store, union
from tests.simulation.model.tick import Tick, Ticking, job_of


def moved_of(rows: list[str], store: Store) -> str:
    """Return the jobs of which a row says that a move was asked, and that were moved."""
    return "".join(job_of(key) for key in rows if key.endswith(ASKED) and job_of(key) in store.exact)


class AskingTicking(Ticking):
    rules: MoveRules

    def meet(self, store: Store, me: Tick, rows: list[str]) -> tuple[Store, Tick]:
        met = {key for key in rows if not key.endswith((ASKED, AWAITED))}
        if self.rules.tick_asks_whether_moved:
            met |= {f"{job}#cancelled" for job in moved_of(rows, store)}
        if self.rules.tick_asks_for_the_awaited:
            met |= {f"{job_of(key)}#job" for key in rows if key.endswith(AWAITED)}
        return super().meet(store, me, sorted(met))


class AskingIngest(Ingest):
    rules: MoveRules

    def cancelled(self, store: Store) -> str:
        moved = moved_of(sorted(store.rows), store) if self.rules.late_path_asks_whether_moved else ""
        return union(store.cancelled(), moved)
