"""What must not be left out of schedules, by file: each mutation breaks one thing, in worlds that have schedules."""

from dataclasses import replace

from tests.simulation.mutation import BOTH, NEITHER, TWICE, in_file, mutation

PAUSED, DIES, ANSWERED = "nothing after a pause", "a schedule does not die", "as answered"

_SUBMISSIONS = (
    "        steps = self._submit(steps, lambda step: step.occurrences)\n"
    "        steps = self._submit(steps, lambda step: [step.following] if step.following else [])\n"
    "        for plan, is_noted in zip(steps, self._spread(self._note, steps), strict=True):\n"
)

_MUTATIONS = [
    *in_file(
        "schedules/planner.py",
        mutation(
            "planned_to is set before the runs are submitted",
            [NEITHER, DIES],
            _SUBMISSIONS,
            "        steps = self._submit(steps, lambda step: [step.following] if step.following else [])\n"
            "        noted = list(self._spread(self._note, steps))\n"
            "        self._submit(steps, lambda step: step.occurrences)\n"
            "        for plan, is_noted in zip(steps, noted, strict=True):\n",
        ),
        mutation(
            "the next planning job is submitted after planned_to is set",
            [DIES],
            _SUBMISSIONS,
            "        steps = self._submit(steps, lambda step: step.occurrences)\n"
            "        noted = list(self._spread(self._note, steps))\n"
            "        self._submit(steps, lambda step: [step.following] if step.following else [])\n"
            "        for plan, is_noted in zip(steps, noted, strict=True):\n",
        ),
        mutation(
            "a step ends by the clock",
            [BOTH, NEITHER, PAUSED],
            "end = heads.step(rule, start)\n",
            "end = heads.step(rule, max(start, now))\n",
        ),
        mutation(
            "a newer generation's step is acknowledged",
            [DIES],
            "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
            "    if head is None or head.generation < request.generation:\n        return Verdict.DONE\n",
        ),
        mutation(
            "planned_to is compared before generations",
            [DIES],
            "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
            "    if head is not None and head.planned_to > request.planned_from:\n        return Verdict.DONE\n"
            "    if head is None or head.generation < request.generation:\n        return Verdict.WAIT\n",
        ),
        mutation(
            "a step that comes before its time is acknowledged",
            [DIES],
            "Verdict.PLAN if head.planned_to == request.planned_from else Verdict.WAIT",
            "Verdict.PLAN if head.planned_to == request.planned_from else Verdict.DONE",
        ),
    ),
    *in_file(
        "testing/memory_table.py",
        mutation(
            "planned_to is set whatever it is",
            [BOTH, NEITHER, PAUSED, DIES, TWICE],
            'is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)',
            'is_as_read = head.get("generation") == generation',
        ),
        mutation(
            "planned_to is set whatever the generation",
            [BOTH, NEITHER, PAUSED, DIES],
            'is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)',
            'is_as_read = head.get("planned_to") == planned_to',
        ),
        mutation(
            "a change is made whatever planned_to",
            [BOTH, NEITHER, PAUSED],
            'return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)',
            'return bool(head["generation"] == change.generation)',
        ),
        mutation(
            "a change is made whatever the generation",
            [BOTH, NEITHER, PAUSED, ANSWERED],
            'return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)',
            'return bool(head["planned_to"] == change.planned_to)',
        ),
        mutation(
            "a change cancels only what has a row",
            [BOTH, PAUSED],
            "            for row in change.cancellations:\n",
            "            for row in change.cancellations:\n"
            "                pk, sk = rows.key(row)\n"
            '                if not self._row((pk, sk.replace("#cancelled", "#job"))):\n'
            "                    continue\n",
        ),
    ),
    *in_file(
        "schedules/head.py",
        mutation(
            "the generation is not in the uid",
            [NEITHER, DIES, BOTH],
            'f"{head.queue}/{head.name}/{generation}/{what}"',
            'f"{head.queue}/{head.name}/{what}"',
        ),
    ),
    *in_file(
        "schedules/changes.py",
        mutation(
            "the head is read before the fence",
            [BOTH, NEITHER, PAUSED],
            "    fence = None if fenced is None else _fence(fenced, table)\n    of_head",
            "    of_head",
            "    return StoredSchedule(head=head",
            "    fence = None if fenced is None else _fence(fenced, table)\n    return StoredSchedule(head=head",
        ),
        mutation(
            "a head that another change may have replaced is taken for the latest",
            [BOTH, NEITHER, PAUSED],
            " and _is_latest(head, table)",
            "",
        ),
        mutation(
            "the clock decides where a generation ends",
            [ANSWERED, BOTH, NEITHER],
            "cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)",
            "cutover = max(head.start, instant.round_up(now))",
        ),
        mutation(
            "a generation ends at the fence even before its beginning",
            [BOTH, NEITHER],
            "cutover = head.start if fence is None else max(fence, head.start)",
            "cutover = head.start if fence is None else fence",
        ),
        mutation(
            "a resume begins at the fence, however long ago that was",
            [PAUSED],
            "cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)",
            "cutover = cutover_of(head, fence)",
        ),
        mutation(
            "a change forgets what jitter has put off",
            [PAUSED],
            "        check_changes(head, cutover)\n",
            "        pass\n",
        ),
        mutation(
            "a change is made whatever the fence",
            [BOTH, NEITHER, PAUSED],
            "fence_below=instant.text(cutover + _INSTANT)",
            'fence_below="~"',
        ),
        mutation(
            "a change cancels nothing",
            [BOTH, PAUSED],
            "ended = cancelled_by(head, cutover, next_is_live=new.is_live)",
            "ended = list[JobId]()",
        ),
        mutation(
            "a change cancels only up to planned_to",
            [BOTH, PAUSED],
            "max(cutover, heads.step(rule, head.planned_to))",
            "max(cutover, head.planned_to)",
        ),
        mutation(
            "a pause leaves what its change has planned itself",
            [PAUSED],
            "max(cutover, heads.step(rule, head.planned_to))",
            "heads.step(rule, head.planned_to)",
        ),
        mutation(
            "a pause leaves what jitter has put off",
            [PAUSED],
            "delay = timedelta(0) if next_is_live else heads.jitter(head.queue, head.name, head.definition)",
            "delay = timedelta(0)",
        ),
        mutation("a pause leaves what jitter has put off of generations before", [PAUSED], "ended + delayed", "ended"),
        mutation(
            "the old rule is not planned up to the cut",
            [NEITHER],
            "        self._plan_up_to(cutover, head, now=now, until=until)\n",
            "",
        ),
        mutation(
            "the planning job of a change is submitted after it",
            [DIES, NEITHER],
            "        self._submit_planning_job(new, now=now, until=until)\n        self._plan_up_to",
            "        self._plan_up_to",
            "        return new if self._table.change(change) else None\n",
            "        is_done = self._table.change(change)\n"
            "        self._submit_planning_job(new, now=now, until=until)\n"
            "        return new if is_done else None\n",
        ),
        mutation(
            "no read barrier for a change's cancellations",
            [BOTH, PAUSED],
            "        self._require_read_barriers(ended, now=now)\n",
            "",
        ),
    ),
]

OF_SCHEDULES = [replace(each, needs_schedules=True) for each in _MUTATIONS]
