"""Units: what DynamoDB counts of a row, and charges for writing it.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from collections.abc import Mapping

UNIT_BYTES = 1024


def write_units(row: Mapping[str, str | int | bool | bytes]) -> int:
    """Return the write units of a row: one for each 1 KiB begun, names and values together.

    >>> write_units({"pk": "x" * 1022}), write_units({"pk": "x" * 1023})
    (1, 2)
    >>> write_units({"pk": "é" * 511}), write_units({"pk": "é" * 512})
    (1, 2)
    """
    return -(-row_bytes(row) // UNIT_BYTES)


def row_bytes(row: Mapping[str, str | int | bool | bytes]) -> int:
    """Return the bytes of a row, names and values together.

    >>> row_bytes({"pk": "emails#0", "ttl": 1795255290})
    19
    """
    texts = "".join([*row, *(value for value in row.values() if isinstance(value, str))])
    others = (value for value in row.values() if not isinstance(value, str))
    return len(texts.encode()) + sum(map(_bytes, others))


def _bytes(value: int | bool | bytes) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        # A byte for two significant digits, and one more.
        return (len(str(value).strip("-0")) + 1) // 2 + 1
    return len(value)
