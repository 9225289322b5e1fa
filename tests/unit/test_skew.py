"""How far a clock is off another that shows whole seconds."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dueline.core.clock import Skew

SKEWS = st.floats(-1e5, 1e5)
EXCHANGES = st.lists(st.tuples(st.floats(0, 3600), st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=20)


def learned(skew, exchanges, cached=None):
    """Return what is known after requests, each sent at a second and taking so long to get there and back."""
    cached = cached or Skew()
    for sent, there, back in exchanges:
        answer = math.floor(sent + there + skew)
        cached = cached.learned(answer, sent=sent, received=sent + there + back)
    return cached


@given(skew=SKEWS, exchanges=EXCHANGES)
def test_corrected_time_is_never_ahead(skew, exchanges):
    cached = learned(skew, exchanges)
    assert cached.low <= skew + 1e-9
    assert skew < cached.high + 1e-9
    assert skew - cached.low <= 1 + min(back for _, _, back in exchanges) + 1e-6


@given(skew=SKEWS, exchanges=EXCHANGES)
def test_what_is_known_only_grows_more_exact(skew, exchanges):
    cached = Skew()
    for exchange in exchanges:
        more = learned(skew, [exchange], cached)
        assert cached.low <= more.low < more.high <= cached.high
        cached = more


@given(before=SKEWS, change=st.one_of(st.floats(-1e4, -20), st.floats(20, 1e4)), exchanges=EXCHANGES)
def test_clock_that_was_set_is_learned_anew(before, change, exchanges):
    cached = learned(before + change, exchanges, learned(before, exchanges))
    assert cached.low <= before + change + 1e-9
    assert before + change < cached.high + 1e-9


@given(skew=SKEWS, started=st.floats(0, 1e6), there=st.floats(0.0001, 0.004), back=st.floats(0.0001, 0.004))
def test_ten_looks_narrow_the_skew_to_milliseconds(skew, started, there, back):
    cached, now = Skew(), started
    for _ in range(10):
        look = cached.next_look(now)
        if look is None:
            break
        assert now - 1e-6 <= look <= now + 1 + 1e-6
        cached = learned(cached=cached, skew=skew, exchanges=[(look, there, back)])
        now = look + there + back
    assert cached.next_look(now) is None
    assert -1e-6 <= skew - cached.low <= 0.03
