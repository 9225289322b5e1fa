"""What must not be left out of schedules: each mutation breaks one thing, and names the promises that then break."""

from dataclasses import replace

from tests.simulation.mutation import BOTH, NEITHER, TWICE, Edit, Mutation, mutation

RUN, PAUSED, DIES, ANSWERED = "one run", "nothing after a pause", "a schedule does not die", "as answered"

_SUBMISSIONS = (
    "        steps = self._submit(steps, lambda step: step.occurrences)\n"
    "        steps = self._submit(steps, lambda step: [step.following] if step.following else [])\n"
    "        for plan, is_noted in zip(steps, self._spread(self._note, steps), strict=True):\n"
)

IN_PLANNER = [
    mutation(
        "planned_to is set before the runs are submitted",
        "schedules/planner.py",
        _SUBMISSIONS,
        "        steps = self._submit(steps, lambda step: [step.following] if step.following else [])\n"
        "        noted = list(self._spread(self._note, steps))\n"
        "        self._submit(steps, lambda step: step.occurrences)\n"
        "        for plan, is_noted in zip(steps, noted, strict=True):\n",
        NEITHER,
        DIES,
    ),
    mutation(
        "the next planning job is submitted after planned_to is set",
        "schedules/planner.py",
        _SUBMISSIONS,
        "        steps = self._submit(steps, lambda step: step.occurrences)\n"
        "        noted = list(self._spread(self._note, steps))\n"
        "        self._submit(steps, lambda step: [step.following] if step.following else [])\n"
        "        for plan, is_noted in zip(steps, noted, strict=True):\n",
        DIES,
    ),
    mutation(
        "a step ends by the clock",
        "schedules/planner.py",
        "end = heads.step(rule, start)\n",
        "end = heads.step(rule, max(start, now))\n",
        BOTH,
        NEITHER,
        PAUSED,
    ),
    mutation(
        "planned_to is set whatever it is",
        "testing/memory_table.py",
        'is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)',
        'is_as_read = head.get("generation") == generation',
        BOTH,
        NEITHER,
        PAUSED,
        DIES,
        TWICE,
    ),
    mutation(
        "planned_to is set whatever the generation",
        "testing/memory_table.py",
        'is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)',
        'is_as_read = head.get("planned_to") == planned_to',
        BOTH,
        NEITHER,
        PAUSED,
        DIES,
    ),
    mutation(
        "a newer generation's step is acknowledged",
        "schedules/planner.py",
        "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
        "    if head is None or head.generation < request.generation:\n        return Verdict.DONE\n",
        DIES,
    ),
    mutation(
        "planned_to is compared before generations",
        "schedules/planner.py",
        "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
        "    if head is not None and head.planned_to > request.planned_from:\n        return Verdict.DONE\n"
        "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
        DIES,
    ),
    mutation(
        "a step that comes before its time is acknowledged",
        "schedules/planner.py",
        "Verdict.PLAN if head.planned_to == request.planned_from else Verdict.WAIT",
        "Verdict.PLAN if head.planned_to == request.planned_from else Verdict.DONE",
        DIES,
    ),
    mutation(
        "the generation is not in the uid",
        "schedules/head.py",
        'f"{head.queue}/{head.name}/{generation}/{what}"',
        'f"{head.queue}/{head.name}/{what}"',
        NEITHER,
        DIES,
        BOTH,
    ),
]

IN_CHANGE = [
    Mutation(
        name="the head is read before the fence",
        breaks=[BOTH, NEITHER, PAUSED],
        edits=[
            Edit(
                file="schedules/changes.py",
                old="    fence = None if fenced is None else _fence(fenced, table)\n    of_head",
                new="    of_head",
            ),
            Edit(
                file="schedules/changes.py",
                old="    return StoredSchedule(head=head",
                new="    fence = None if fenced is None else _fence(fenced, table)\n"
                "    return StoredSchedule(head=head",
            ),
        ],
    ),
    mutation(
        "a head that another change may have replaced is taken for the latest",
        "schedules/changes.py",
        " and _is_latest(head, table)",
        "",
        BOTH,
        NEITHER,
        PAUSED,
    ),
    mutation(
        "the clock decides where a generation ends",
        "schedules/changes.py",
        "cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)",
        "cutover = max(head.start, instant.round_up(now))",
        ANSWERED,
        BOTH,
        NEITHER,
    ),
    mutation(
        "a generation ends at the fence even before its beginning",
        "schedules/changes.py",
        "cutover = head.start if fence is None else max(fence, head.start)",
        "cutover = head.start if fence is None else fence",
        BOTH,
        NEITHER,
    ),
    mutation(
        "a resume begins at the fence, however long ago that was",
        "schedules/changes.py",
        "cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)",
        "cutover = cutover_of(head, fence)",
        PAUSED,
    ),
    mutation(
        "a change forgets what jitter has put off",
        "schedules/changes.py",
        "        check_changes(head, cutover)\n",
        "        pass\n",
        PAUSED,
    ),
    mutation(
        "a change is made whatever the fence",
        "schedules/changes.py",
        "fence_below=instant.text(cutover + _INSTANT)",
        'fence_below="~"',
        BOTH,
        NEITHER,
        PAUSED,
    ),
    mutation(
        "a change is made whatever planned_to",
        "testing/memory_table.py",
        'return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)',
        'return bool(head["generation"] == change.generation)',
        BOTH,
        NEITHER,
        PAUSED,
    ),
    mutation(
        "a change is made whatever the generation",
        "testing/memory_table.py",
        'return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)',
        'return bool(head["planned_to"] == change.planned_to)',
        BOTH,
        NEITHER,
        PAUSED,
        ANSWERED,
    ),
    mutation(
        "a change cancels nothing",
        "schedules/changes.py",
        "ended = cancelled_by(head, cutover, next_is_live=new.is_live)",
        "ended = list[JobId]()",
        BOTH,
        PAUSED,
    ),
    mutation(
        "a change cancels only what has a row",
        "testing/memory_table.py",
        "            for row in change.cancellations:\n                pk, sk = rows.key(row)\n",
        "            for row in change.cancellations:\n                pk, sk = rows.key(row)\n"
        '                if sk.replace("#cancelled", "#job") not in self._rows[pk]:\n                    continue\n',
        BOTH,
        PAUSED,
    ),
    mutation(
        "a change cancels only up to planned_to",
        "schedules/changes.py",
        "max(cutover, heads.step(rule, head.planned_to))",
        "max(cutover, head.planned_to)",
        BOTH,
        PAUSED,
    ),
    mutation(
        "a pause leaves what its change has planned itself",
        "schedules/changes.py",
        "max(cutover, heads.step(rule, head.planned_to))",
        "heads.step(rule, head.planned_to)",
        PAUSED,
    ),
    mutation(
        "a pause leaves what jitter has put off",
        "schedules/changes.py",
        "delay = timedelta(0) if next_is_live else heads.jitter(head.queue, head.name, head.definition)",
        "delay = timedelta(0)",
        PAUSED,
    ),
    mutation(
        "a pause leaves what jitter has put off of generations before",
        "schedules/changes.py",
        "ended + delayed",
        "ended",
        PAUSED,
    ),
    mutation(
        "the old rule is not planned up to the cut",
        "schedules/changes.py",
        "        self._plan_up_to(cutover, head, now=now, until=until)\n",
        "",
        NEITHER,
    ),
    Mutation(
        name="the planning job of a change is submitted after it",
        breaks=[DIES, NEITHER],
        edits=[
            Edit(
                file="schedules/changes.py",
                old="        self._submit_planning_job(new, now=now, until=until)\n        self._plan_up_to",
                new="        self._plan_up_to",
            ),
            Edit(
                file="schedules/changes.py",
                old="        return new if self._table.change(change) else None\n",
                new="        is_done = self._table.change(change)\n"
                "        self._submit_planning_job(new, now=now, until=until)\n"
                "        return new if is_done else None\n",
            ),
        ],
    ),
    mutation(
        "no read barrier for a change's cancellations",
        "schedules/changes.py",
        "        self._require_read_barriers(ended, now=now)\n",
        "",
        BOTH,
        PAUSED,
    ),
]
IN_SCHEDULES = [replace(each, needs_schedules=True) for each in (*IN_PLANNER, *IN_CHANGE)]
