"""Units: what DynamoDB counts of a row, and charges for writing it.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from collections.abc import Mapping
from itertools import chain

UNIT_BYTES = 1024


def write_units(row: Mapping[str, str | int | bool | bytes]) -> int:
    """Return the write units of a row: one for each 1 KiB begun, names and values together.

    >>> write_units({"pk": "x" * 1022}), write_units({"pk": "x" * 1023})
    (1, 2)
    """
    return -(-sum(map(_bytes, chain(row, row.values()))) // UNIT_BYTES)


def _bytes(value: str | int | bool | bytes) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        # A byte for two significant digits, and one more.
        return (len(str(value).strip("-0")) + 1) // 2 + 1
    return len(value)
