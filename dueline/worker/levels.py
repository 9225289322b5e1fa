"""In which order a worker asks the levels of a queue."""

# One turn in so many begins with a lower level, so that none waits for ever.
FLOOR_TURNS = 10


def order_of(levels: int, *, turn: int) -> list[int]:
    """Return the levels in the order in which to ask them in the so-manieth turn, each counted from 0.

    The most urgent comes first, but in every tenth turn one of the others, each when it is its turn.

    >>> [order_of(3, turn=turn) for turn in (0, 9, 19)]
    [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    """
    order = list(range(levels))
    if levels > 1 and turn % FLOOR_TURNS == FLOOR_TURNS - 1:
        first = 1 + (turn // FLOOR_TURNS) % (levels - 1)
        order.remove(first)
        order.insert(0, first)
    return order
