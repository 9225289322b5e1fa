"""Whose work Dueline uses, and under which licence: `python -m docs.licences` writes docs/licences.md.

Read from the packages that are installed and from npm's locks, so that what is listed is what is pinned.
"""

import json
import re
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCKS = tuple(ROOT / "tests" / folder for folder in ("contract", "e2e", "e2e/console"))
PINNED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*])?==([^\s;\\]+)", re.MULTILINE)
# What goes where a user's data is: all else is on the machine that builds, deploys or tests.
WITH_THE_LIBRARY = ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")
IN_THE_FUNCTIONS = (
    *("annotated-types", "aws_lambda_powertools", "cronsim", "pydantic", "pydantic_core", "typing-inspection"),
    *("typing_extensions", "tzdata"),
)
# What tools are called, requirements.txt and npm's locks say.
DISTRIBUTED = ("With the library", "In the functions")
# As SPDX writes what packages call by other names.
SPDX = {
    "ASL 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "The MIT License (MIT)": "MIT",
    # Of docutils: GPL 3 is of a file for Emacs, which its wheel does not have.
    "public domain, Python, 2-Clause BSD, GPL 3 (see COPYING.txt)": "BSD-2-Clause AND PSF-2.0",
}
_INTRODUCTION = """\
# Licences

Dueline is under [Apache 2.0](../LICENSE); files of others in the console's page under
[MIT and Apache 2.0](../dueline/console/page/vendor/README.md). What it uses besides, as pinned, written by
`python -m docs.licences`. Users of the library get boto3 and its dependencies; the functions also hold the second
list. The rest builds, deploys and tests, and is not distributed: counted here, named in requirements.txt and npm's
locks.
"""


def page() -> str:
    """Return the page."""
    pinned = dict(PINNED.findall((ROOT / "requirements.txt").read_text()))
    tools = [name for name in pinned if name not in WITH_THE_LIBRARY + IN_THE_FUNCTIONS]
    sections = {
        "With the library": _python(WITH_THE_LIBRARY, pinned),
        "In the functions": _python(IN_THE_FUNCTIONS, pinned),
        "To build, deploy and test": [*_python(tools, pinned), *sorted(set(_of_npm()))],
    }
    texts = (f"## {title}\n\n{_table(rows, named=title in DISTRIBUTED)}" for title, rows in sections.items())
    return "\n".join([_INTRODUCTION, *texts])


def _python(names: tuple[str, ...] | list[str], pinned: dict[str, str]) -> list[tuple[str, str, str]]:
    return [(name, pinned[name], licence(metadata(name))) for name in sorted(names, key=str.lower)]


def licence(package: PackageMetadata) -> str:
    """Return a package's licence in SPDX's terms. Raises ValueError for one without a licence that we know."""
    fields = ("License-Expression", "License", "Classifier")
    expressions, licences, classifiers = (package.get_all(field) or [] for field in fields)
    names: list[str] = [
        *expressions,
        *(text.partition("\n")[0] for text in licences),
        *(name.rpartition(" :: ")[2] for name in classifiers if name.startswith("License")),
    ]
    for name in names:
        if name and name not in ("UNKNOWN", "OSI Approved"):
            return SPDX.get(name, name)
    raise ValueError(f"{package['Name']} names no licence: look it up before you use it")


def _of_npm() -> Iterator[tuple[str, str, str]]:
    for folder in LOCKS:
        packages = json.loads((folder / "package-lock.json").read_text())["packages"]
        for path, package in packages.items():
            if path:
                yield path.rpartition("node_modules/")[2], package["version"], package["license"]


def _table(rows: list[tuple[str, str, str]], *, named: bool) -> str:
    by_licence: dict[str, list[str]] = {}
    for name, version, spdx in rows:
        by_licence.setdefault(spdx, []).append(f"{name} {version}")
    lines = (
        f"| {spdx} | {', '.join(packages) if named else len(packages)} |\n"
        for spdx, packages in sorted(by_licence.items())
    )
    return "| licence | packages |\n|---|---|\n" + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
