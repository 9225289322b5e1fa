"""An extension of mkdocstrings: how the API reference shows the docstrings."""

import re
from typing import Any

from griffe import Extension, Object

# From a prompt to the next empty line.
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
# Every field of a dataclass is both.
NOISE = {"class-attribute", "instance-attribute"}


class Shown(Extension):  # type: ignore[misc]  # griffe comes with docs/requirements.txt alone, untyped to mypy
    def on_object(self, *, obj: Object, **_: Any) -> None:
        obj.labels -= NOISE
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub("```pycon\n\\g<0>\n```", obj.docstring.value)
