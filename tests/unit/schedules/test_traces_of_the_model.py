"""What the model found without a rule of changes, over the code: the shortest traces."""

from datetime import timedelta

from dueline.model.schedule_rows import head_key
from dueline.schedules.occurrence import jitter
from tests.scheduled import Scheduled, a_definition, at

QUARTERLY = {"every": timedelta(minutes=15)}
HOURLY = {"every": timedelta(hours=1), "jitter": timedelta(hours=1)}


def test_a_head_that_a_read_still_shows_after_a_pause_plans_nothing_beyond_the_cut(monkeypatch):
    system = Scheduled()
    system.define(**QUARTERLY)
    system.live(20)
    key = head_key("emails", "digest")
    before = system.table.read([key]).rows
    system.live(24, planner=False)
    cut = system.changes.pause("emails", "digest").effective_from
    system.live(15, planner=False)
    read, shown = system.table.read, iter([before, before])

    def read_as_before(keys, **how):
        reading = read(keys, **how)
        return reading if key not in keys else type(reading)(rows={**reading.rows, **next(shown, {})})

    monkeypatch.setattr(system.table, "read", read_as_before)
    system.define(**QUARTERLY, payload='"new"')
    system.live(60)
    assert next(shown, None) is None
    assert [job.nominal for job in system.sent() if job.nominal > cut] == []


def test_a_pause_ends_what_jitter_has_put_off_beyond_it_of_the_generation_before_too():
    system = Scheduled()
    put_off = {name: jitter("emails", name, a_definition(**HOURLY)) for name in map(str, range(50))}
    name = max(put_off, key=lambda name: put_off[name])
    system.define(name, **HOURLY)
    system.live(62)
    updated = system.define(name, **HOURLY, payload='"new"')
    system.live(1)
    cut = system.changes.pause("emails", name).effective_from
    system.live(150)
    assert (updated.head.generation, at(62) < cut) == (2, True)
    assert [job.id.due for job in system.sent() if job.id.due > cut] == []
