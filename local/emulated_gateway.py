"""The emulator of AWS, whose gateway invokes a function as AWS's does: by the alias in its integration's URI.

Its own invokes the version behind the alias, and the function's context has that version's ARN.
"""

from typing import Any

from ministack.app import main
from ministack.services import lambda_svc

_find: Any = lambda_svc._get_func_record_for_ref_in_scope


def _find_as_named(function: str, **scope: Any) -> tuple[Any, Any, str]:
    record, config, name = _find(function, **scope)
    is_arn = function.startswith("arn:aws:lambda:")
    return record, {**config, "FunctionArn": function} if config and is_arn else config, name


if __name__ == "__main__":
    lambda_svc._get_func_record_for_ref_in_scope = _find_as_named
    main()
