"""The emulator of AWS, with three things as AWS has them.

Its gateway invokes a function by the alias in its integration's URI: its own invokes the version behind the alias, and
the function's context has that version's ARN. And logs are filtered by fields: its own returns every line, minutes of
which cost the console a second. And a function's later processes start at once: its own import the code each time.
"""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack.app import main
from ministack.core import lambda_runtime
from ministack.services import cloudwatch_logs, lambda_svc

sys.path.insert(0, str(Path(__file__).parents[1]))
from local.forked_functions import start

_compile_pattern: Any = cloudwatch_logs._compile_filter_pattern
_find: Any = lambda_svc._get_func_record_for_ref_in_scope


def _find_as_named(function: str, **scope: Any) -> tuple[Any, Any, str]:
    record, config, name = _find(function, **scope)
    is_arn = function.startswith("arn:aws:lambda:")
    return record, {**config, "FunctionArn": function} if config and is_arn else config, name


def compile_pattern(pattern: str) -> Any:
    """Return what matches lines of JSON that have any of the fields of `{ ($.A = *) || ($.B = *) }`.

    >>> [compile_pattern("{ ($.A = *) || ($.B = *) }")(line) for line in ('{"B": 0}', '{"C": "B"}', "START")]
    [True, False, False]
    """
    fields = [f'"{name}":' for name in re.findall(r"\$\.(\w+) = \*", pattern)]
    return (lambda line: any(field in line for field in fields)) if fields else _compile_pattern(pattern)


if __name__ == "__main__":
    # Else each fork would import it, and the emulator with it.
    del __file__
    cloudwatch_logs._compile_filter_pattern = compile_pattern
    lambda_svc._get_func_record_for_ref_in_scope = _find_as_named
    if sys.platform == "linux":  # elsewhere a fork may not use the system's own libraries
        lambda_runtime.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": start})
    main()
