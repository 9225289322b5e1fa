"""How far a clock is off another that tells whole seconds."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dueline.model.skew import Skew

SKEWS = st.floats(-1e5, 1e5)
EXCHANGES = st.lists(st.tuples(st.floats(0, 3600), st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=20)


def learned(skew, exchanges, known=None):
    """Return what is known after requests, each sent at a second and taking so long to get there and back."""
    known = known or Skew()
    for sent, there, back in exchanges:
        told = math.floor(sent + there + skew)
        known = known.learned(told, sent=sent, received=sent + there + back)
    return known


@given(skew=SKEWS, exchanges=EXCHANGES)
def test_the_corrected_time_is_never_ahead_of_the_other_clock_and_a_second_and_a_way_back_behind_at_most(
    skew, exchanges
):
    known = learned(skew, exchanges)
    assert known.low <= skew + 1e-9
    assert skew < known.high + 1e-9
    assert skew - known.correction <= 1 + min(back for _, _, back in exchanges) + 1e-6


@given(skew=SKEWS, exchanges=EXCHANGES)
def test_what_is_known_only_grows_more_exact(skew, exchanges):
    known = Skew()
    for exchange in exchanges:
        more = learned(skew, [exchange], known)
        assert known.low <= more.low < more.high <= known.high
        known = more


@given(before=SKEWS, change=st.one_of(st.floats(-1e4, -20), st.floats(20, 1e4)), exchanges=EXCHANGES)
def test_a_clock_that_was_set_is_learned_anew(before, change, exchanges):
    known = learned(before + change, exchanges, learned(before, exchanges))
    assert known.low <= before + change + 1e-9
    assert before + change < known.high + 1e-9


def test_while_nothing_is_known_the_local_time_counts():
    assert Skew().correction == 0


@given(skew=SKEWS, begun=st.floats(0, 1e6), there=st.floats(0.0001, 0.004), back=st.floats(0.0001, 0.004))
def test_ten_looks_at_the_right_moments_tell_the_time_to_a_few_milliseconds(skew, begun, there, back):
    known, now = Skew(), begun
    for _ in range(10):
        look = known.next_look(now)
        if look is None:
            break
        assert now - 1e-6 <= look <= now + 1 + 1e-6
        known = learned(known=known, skew=skew, exchanges=[(look, there, back)])
        now = look + there + back
    assert known.next_look(now) is None
    assert -1e-6 <= skew - known.correction <= 0.03
