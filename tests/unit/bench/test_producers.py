"""What is told of producers, out of what was measured."""

from bench.producers import PART
from bench.producers.measure import DIRECT, HTTP, ONE_BEFORE, ONE_NOW, RAW_PUTS, targets


def test_rates_are_told_beside_the_local_aws_own_and_held_to_what_they_were():
    rates, singly = {HTTP: 560.0, DIRECT: 1000.0, RAW_PUTS: 169.2}, {ONE_NOW: 0.0131, ONE_BEFORE: 0.0071}
    figures = {"jobs": 5000, "a_second": rates, "singly": singly, "now_to_before": 1.85}
    told = PART.markdown(figures)
    assert f"| {RAW_PUTS} | 169 |" in told
    assert f"| {ONE_NOW} | 13.1 |" in told
    assert [target.is_met for target in targets(figures)] == [True, False, False]
    assert all(target.why and target.before for target in targets(figures))
