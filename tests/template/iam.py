"""Whether a policy allows a request, as far as Dueline's policies use IAM's language.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from tests.template.synthesis import Template

Context = Mapping[str, Sequence[str]]


def allows(statements: Sequence[Mapping[str, Any]], action: str, resource: str, context: Context | None = None) -> bool:
    return any(_applies(statement, action, resource, context or {}) for statement in statements)


def policy(template: Template, name: str) -> list[dict[str, Any]]:
    """Return the statements of a managed policy, spelled out."""
    _, properties = template.find("AWS::IAM::ManagedPolicy", name)
    return statements(template, properties["PolicyDocument"])


def statements(template: Template, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a policy document, their resources and what their conditions want spelled out."""
    return [
        {
            **statement,
            "Resource": list(map(template.spelled, as_list(statement["Resource"]))),
            "Condition": {
                operator: {
                    key: expected if isinstance(expected, list) else template.spelled(expected)
                    for key, expected in keys.items()
                }
                for operator, keys in statement.get("Condition", {}).items()
            },
        }
        for statement in document["Statement"]
    ]


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    assert statement.keys() <= {"Effect", "Action", "Resource", "Condition"}
    assert statement["Effect"] == "Allow"
    return (
        any(fnmatchcase(action, pattern) for pattern in as_list(statement["Action"]))
        and any(fnmatchcase(resource, pattern) for pattern in as_list(statement["Resource"]))
        and all(
            _holds(operator, context.get(key, ()), as_list(expected))
            for operator, keys in statement.get("Condition", {}).items()
            for key, expected in keys.items()
        )
    )


def _holds(operator: str, values: Sequence[str], expected: Sequence[str]) -> bool:
    match operator:
        case "ForAllValues:StringLike":
            return all(any(fnmatchcase(value, pattern) for pattern in expected) for value in values)
        case "StringEquals":
            return any(value in expected for value in values)
        case "Null":
            return (not values) == (expected == ["true"])
    raise NotImplementedError(operator)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
