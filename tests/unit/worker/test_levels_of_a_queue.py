from collections import Counter

from dueline.worker.receiver import order_of


def test_a_queue_of_one_level_is_asked_as_it_is():
    assert {tuple(order_of(1, turn=turn)) for turn in range(50)} == {(0,)}


def test_each_lower_level_comes_first_in_its_turn_and_none_is_left_out():
    firsts = Counter(order_of(5, turn=turn)[0] for turn in range(400))
    assert firsts == {0: 360, 1: 10, 2: 10, 3: 10, 4: 10}
    assert all(sorted(order_of(5, turn=turn)) == [0, 1, 2, 3, 4] for turn in range(50))
