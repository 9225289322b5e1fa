from hypothesis import given
from hypothesis import strategies as st

from dueline.core.queue_settings import MAX_HIDDEN_SECONDS, Backoff, RetryPolicy


def delays(jitter=1.0, **given):
    policy = RetryPolicy(**given)
    return [policy.delay_after(attempt, jitter=jitter) for attempt in range(1, policy.attempts)]


def test_default_policy_grows_five_times_then_doubles():
    assert delays() == [30, 60, 90, 120, 150, 300, 600, 1200, 2400]
    assert delays(max_delay=500) == [30, 60, 90, 120, 150, 300, 500, 500, 500]


def test_constant_linear_and_exponential_delays():
    assert delays(backoff=Backoff.CONSTANT, attempts=4) == [30, 30, 30]
    assert delays(backoff=Backoff.LINEAR, attempts=8, delay=10) == [10, 20, 30, 40, 50, 60, 70]
    assert delays(backoff=Backoff.EXPONENTIAL, attempts=5, delay=2) == [2, 4, 8, 16]


def test_only_exponential_delays_have_jitter():
    assert delays(jitter=0.0) == [30, 60, 90, 120, 150, 150, 300, 600, 1200]
    assert delays(jitter=0.0, backoff=Backoff.EXPONENTIAL, attempts=4, delay=2) == [2, 2, 4]


@given(
    backoff=st.sampled_from(Backoff),
    attempt=st.integers(1, 1000),
    delay=st.integers(1, MAX_HIDDEN_SECONDS),
    more=st.integers(0, MAX_HIDDEN_SECONDS),
    jitter=st.floats(0, 1),
)
def test_no_delay_is_beyond_the_longest_or_none_at_all(backoff, attempt, delay, more, jitter):
    policy = RetryPolicy(backoff=backoff, attempts=1000, delay=delay, max_delay=delay + more)
    assert 1 <= policy.delay_after(attempt, jitter=jitter) <= policy.max_delay
