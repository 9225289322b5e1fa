"""The planner function: stub."""


def handler(event: dict[str, object], context: object) -> dict[str, object]:
    return {"batchItemFailures": []}
