"""Units of DynamoDB: by size, and as an engine says that it charges them.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from collections.abc import Mapping
from typing import Any

from dueline.model.units import UNIT_BYTES

READ_UNIT_BYTES = 4096


def write_units(size: int) -> int:
    """Return the write units of a row of so many bytes.

    >>> write_units(200), write_units(1024), write_units(1025)
    (1, 1, 2)
    """
    return -(-size // UNIT_BYTES)


def read_units(size: int) -> int:
    """Return the read units of a consistent read of so many bytes: one at least.

    >>> read_units(0), read_units(4096), read_units(4097)
    (1, 1, 2)
    """
    return max(1, -(-size // READ_UNIT_BYTES))


def ask_for_units(params: dict[str, Any], model: Any, **_: Any) -> None:
    """Have a request ask for its units: a handler of botocore's `before-parameter-build`."""
    if "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "TOTAL"


def consumed_units(answer: Mapping[str, Any]) -> float:
    """Return the units that an engine says in its answer to such a request."""
    consumed = answer.get("ConsumedCapacity", [])
    return float(sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed])))
