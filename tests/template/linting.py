"""What cfn-lint finds in a template; its rules, which take as long to load as a template to lint, are loaded once."""

import json
from functools import cache
from typing import Any

from tests.template.synthesis import Template

# CDK writes DependsOn for a function's role, which GetAtt says already.
IGNORED = ["W3005"]


def lint(template: Template) -> list[Any]:
    """Return what is wrong with a template, or that it cannot be read."""
    from cfnlint.decode.decode import decode_str

    content, unreadable = decode_str(json.dumps(template.content))
    return unreadable or list(_linter().validate_template(content))


@cache
def _linter() -> Any:
    # Only thorough tests lint: others need not wait for the import.
    from cfnlint.config import ConfigMixIn
    from cfnlint.runner import Runner

    return Runner(ConfigMixIn(ignore_checks=IGNORED))
