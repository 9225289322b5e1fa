"""How the jobs table is paid for, validated."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from dueline.config.queue import STRICT

ON_DEMAND = "on-demand"
# DynamoDB's quota of a table, unless it was raised.
MOST_UNITS = 40_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
NEW_TABLE_WRITES = 4_000
# Of an account's 1,000 concurrent executions, unless the quota is raised, Lambda keeps 100 for what reserves none.
MOST_RESERVED = 100_000


class Storage(StrEnum):
    """The table's class: what storage costs against what requests cost."""

    STANDARD = "standard"
    INFREQUENT = "infrequent"


class Capacity(BaseModel):
    """Provisioned units a second, of writes and of reads each, which follow the load between two bounds."""

    model_config = STRICT

    min: int = Field(ge=1, le=MOST_UNITS, description="Units a second that are always there, and always paid for.")
    max: int = Field(ge=1, le=MOST_UNITS, description="Units a second beyond which requests wait. At least min.")

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"max is {self.max}: it must be at least min, which is {self.min}")
        return self


def _on_demand_is_none(given: Any) -> Any:
    if given == ON_DEMAND:
        return None
    if not isinstance(given, dict | Capacity):
        raise ValueError(f"must be {ON_DEMAND}, or settings: there are {', '.join(Capacity.model_fields)}")
    return given


# None is on demand.
MaybeCapacity = Annotated[
    Capacity | None, BeforeValidator(_on_demand_is_none, json_schema_input_type=Literal["on-demand"] | Capacity)
]
