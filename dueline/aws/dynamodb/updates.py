"""Conditional updates of the table's rows, in DynamoDB's language."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """A conditional update; `names` are the attributes that it names, some of them words reserved by DynamoDB."""

    expression: str
    condition: str
    names: tuple[str, ...]


# Of a row that is there: a first tick looks among the jobs first (before.py).
TAKE = Update(
    expression="SET #owner = :owner, #lease = :lease, #fence = :fence",
    condition="attribute_exists(pk) AND (attribute_not_exists(#owner) OR #owner = :owner OR #lease <= :now)"
    " AND (attribute_not_exists(#fence) OR #fence <= :fence)",
    names=("owner", "lease", "fence"),
)
# What is on the right is what was there before, if anything was.
SEAL = Update(
    expression="SET #moved_fence = if_not_exists(#fence, :first), #moved_cursor = if_not_exists(#cursor, :first),"
    " #owner = :owner, #lease = :end, #fence = :end",
    condition="attribute_not_exists(#owner) OR #lease <= :now",
    names=("moved_fence", "moved_cursor", "fence", "cursor", "owner", "lease"),
)
_HELD = "#owner = :owner AND (attribute_not_exists(#cursor) OR #cursor <= :cursor) AND #fence <= :fence"
RENEW = Update(
    expression="SET #cursor = :cursor, #fence = :fence, #lease = :lease",
    condition=_HELD,
    names=("owner", "cursor", "fence", "lease"),
)
RELEASE = Update(
    expression="SET #cursor = :cursor, #fence = :fence REMOVE #owner, #lease",
    condition=_HELD,
    names=("owner", "cursor", "fence", "lease"),
)
# It changes nothing, and is refused while a transaction has the row in hand, as every write is.
ASK = Update(expression="SET #ttl = #ttl", condition="#ttl > :none", names=("ttl",))
MARK_EXACT = Update(expression="SET #exact = :exact", condition="attribute_exists(#exact)", names=("exact",))
MARK_DONE = Update(expression="SET #done = :done", condition="#id = :id", names=("done", "id"))
ADVANCE = Update(
    expression="SET #until = #until + :amount, #ttl = :ttl", condition="#until >= :now", names=("until", "ttl")
)
BEGIN = Update(
    expression="SET #until = :begin, #ttl = :ttl",
    condition="attribute_not_exists(#until) OR #until < :now",
    names=("until", "ttl"),
)
PLAN = Update(
    expression="SET #planned_to = :to",
    condition="#generation = :generation AND #planned_to = :planned_to",
    names=("generation", "planned_to"),
)
