"""Fold the attributes for which SQS has no place left into one, and unfold them when their message is put back."""

import json
from collections.abc import Mapping

FOLDED = "dueline-folded"


def folded(attributes: Mapping[str, str], *, most: int) -> dict[str, str]:
    """Return attributes as so many at most, 1 or more: those that come last as a JSON object in one.

    >>> folded({"a": "1", "b": "2", "c": "3"}, most=2)
    {'a': '1', 'dueline-folded': '{"b":"2","c":"3"}'}
    """
    if len(attributes) <= most:
        return dict(attributes)
    each = list(attributes.items())
    rest = json.dumps(dict(each[most - 1 :]), ensure_ascii=False, separators=(",", ":"))
    return {**dict(each[: most - 1]), FOLDED: rest}


def unfolded(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as they were before `folded`. What it never wrote stays as it is: anyone may send one.

    >>> unfolded({"a": "1", "dueline-folded": '{"b":"2"}'})
    {'a': '1', 'b': '2'}
    """
    try:
        rest = json.loads(attributes.get(FOLDED, ""))
    except (ValueError, RecursionError):
        return dict(attributes)
    if not isinstance(rest, dict) or not all(isinstance(value, str) for value in rest.values()):
        return dict(attributes)
    own = {name: value for name, value in attributes.items() if name != FOLDED}
    return own | {name: value for name, value in rest.items() if name not in own}
