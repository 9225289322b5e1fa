from tests.scheduled import Scheduled


def test_a_schedule_runs_each_minute_once():
    system = Scheduled()
    system.define()
    system.live(60)
    assert system.nominals()[:59] == list(range(1, 60))
