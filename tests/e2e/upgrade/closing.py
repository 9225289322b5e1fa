"""The end of a journey between releases: which promises were kept, and whether it met what it is about."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import httpx

from dueline.protocol.tick import CHECKPOINT_JOBS, WAVE_JOBS
from tests.e2e.faults import repeats
from tests.e2e.faults.books import FAULTS, Books
from tests.e2e.faults.exchange import Record
from tests.e2e.faults.heads import parked_planning_jobs
from tests.e2e.faults.killing import Kill, Killer
from tests.e2e.faults.ordeal import unexplained_faults
from tests.e2e.faults.stage import Stage, dead_letters, described
from tests.e2e.faults.story import Story
from tests.e2e.upgrade.cargo import offloaded, wrong_payloads
from tests.e2e.upgrade.reports import Reports
from tests.e2e.upgrade.switches import AFTER, BEFORE, Releases
from tests.e2e.upgrade.traffic import Traffic

OF_JOBS, OF_SCHEDULES = {200, 202, 409}, {200, 201, 404, 412}
FEWEST = 3
MOST_TOLD = 3
# A tick that an update of its function ends, in its middle or as it starts, and one that is fired at an alias which the
# predecessor does not have.
CUT_OFF = ("Worker process died", "Worker process exited immediately", "Function not found")


@dataclass(frozen=True, kw_only=True, slots=True)
class Journey:
    """All that took part in it."""

    stage: Stage
    releases: Releases
    traffic: Traffic
    reports: Reports
    killer: Killer

    @property
    def books(self) -> Books:
        return self.traffic.books


def close(story: Story, journey: Journey) -> None:
    """Write into a story what was promised and not kept, and figures."""
    records = list(journey.stage.proxy.records)
    kills = journey.killer.done + journey.releases.cut_off(records)
    _close_of_repeats(story, journey, records, kills)
    _close_of_ticks(story, journey, kills)
    _close_of_answers(story, journey)
    letters, steps = dead_letters(journey.stage), parked_planning_jobs(journey.stage)
    story.expect(not letters and not steps, f"parked: {described(letters)}, {len(steps)} planning jobs")
    journey.reports.close(story)
    _expect_enough_of_all(story, journey, records)
    journey.books.close(story, journey.stage)


def _close_of_repeats(story: Story, journey: Journey, records: Sequence[Record], kills: Sequence[Kill]) -> None:
    causes = [repeats.causes_of(books, records, kills) for books in (journey.books, journey.reports.books)]
    riddles = [id for found in causes for id, why in found.items() if repeats.UNEXPLAINED in why]
    story.expect(not riddles, f"{len(riddles)} jobs arrived more than once for no cause")
    story.told += "\n\n".join(map(journey.stage.story_of, riddles[:MOST_TOLD]))
    most = repeats.most_by_one_kill(journey.books, records, kills)
    story.expect(most <= CHECKPOINT_JOBS + WAVE_JOBS, f"one killed tick repeated {most} jobs")
    story.figures |= {
        "kills": len(journey.killer.done),
        "kills by step": dict(sorted(Counter(map(str, journey.killer.done)).items())),
        "invocations that a deployment may have cut off": len(kills) - len(journey.killer.done),
        "repeats by cause": dict(Counter(chain.from_iterable(why for found in causes for why in found.values()))),
    }


def _close_of_ticks(story: Story, journey: Journey, kills: Sequence[Kill]) -> None:
    at_switches = [fault for switch in journey.releases.switches for fault in switch.faults]
    excused = {id(fault) for fault in at_switches if any(why in str(fault) for why in CUT_OFF)}
    others = [fault for fault in journey.stage.tick_faults if id(fault) not in excused]
    faults = unexplained_faults(others, journey.killer.done)
    story.expect(not faults, f"ticks failed that were neither killed nor cut off: {faults}")
    met = [why for fault in at_switches for why in CUT_OFF if why in str(fault)]
    story.figures["ticks that failed at a deployment"] = dict(Counter(met))


def _close_of_answers(story: Story, journey: Journey) -> None:
    books = journey.books
    answers = {"jobs": (books.statuses, OF_JOBS), "schedules": (journey.reports.books.statuses, OF_SCHEDULES)}
    for what, (statuses, allowed) in answers.items():
        story.expect(set(statuses) <= allowed | FAULTS, f"callers were told of {what}: {dict(statuses)}")
        story.figures[f"answers about {what}"] = dict(statuses)
    strangers = sorted(books.strangers)
    story.expect(not strangers, f"arrived though nobody was told of them: {strangers}")
    story.told += "\n\n".join(map(journey.stage.story_of, strangers[:MOST_TOLD]))
    wrong = wrong_payloads(journey.stage, books, journey.traffic.payloads)
    story.expect(not wrong, f"arrived with another payload: {wrong}")
    second = journey.traffic.second_jobs
    story.expect(not second, f"two jobs under one key: {second}")


def _expect_enough_of_all(story: Story, journey: Journey, records: Sequence[Record]) -> None:
    """Complain of a journey that did not meet what it is about: it would show nothing."""
    books, handed_over = journey.books, journey.releases.handed_over(records)
    by_others = journey.releases.scheduled_by_others(records)
    moved = [move for move in books.moves.values() if move.status == httpx.codes.OK]
    buffered = {uid for record in records if record.queue.endswith("-inbound") for uid in record.sent}
    met = {
        f"written by {BEFORE}, handed over by {AFTER}": handed_over[BEFORE, AFTER],
        f"written by {AFTER}, handed over by {BEFORE}": handed_over[AFTER, BEFORE],
        f"by direct clients of {BEFORE} under {AFTER}": by_others[BEFORE],
        f"by direct clients of {AFTER} under {BEFORE}": by_others[AFTER],
        "cancelled": list(books.cancels.values()).count(httpx.codes.OK),
        "moved": len(moved),
        "by the inbound queue": len(buffered),
        "with a payload in S3": offloaded(books),
    }
    for what, count in met.items():
        story.expect(count >= FEWEST, f"{what}: {count} jobs, fewer than {FEWEST}")
    story.expect(journey.killer.is_done, f"{len(journey.killer.done)} kills were done")
    story.figures |= met
