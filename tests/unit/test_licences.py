"""Packages that Dueline uses are listed, under licences that do not bind its users."""

import re
from email.message import Message

import pytest

from docs import licences

# MPL 2.0 requires to publish changes of such a file. There are none here, and it is neither installed nor deployed.
TO_BUILD_AND_TEST_ALONE = {"MPL-2.0", "CNRI-Python"}
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"}


def _sections() -> dict[str, list[str]]:
    parts = re.split(r"^## (.+)$", licences.page(), flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"^\| ([^|]+) \| [^|]*\d[^|]* \|$", text, re.MULTILINE)
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_page_lists_pinned_packages() -> None:
    assert licences.PAGE.read_text() == licences.page(), "run python -m docs.licences"


def test_licences_are_permissive() -> None:
    for title, result in _sections().items():
        allowed = PERMISSIVE | (TO_BUILD_AND_TEST_ALONE if title.startswith("To ") else set())
        unknown = {each for line in result for each in re.split(r" AND | OR ", line.strip("()")) if each not in allowed}
        assert (title, unknown, bool(result)) == (title, set(), True)


def test_package_without_a_licence_is_an_error() -> None:
    package = Message()
    package["Name"] = "nameless"
    package["License"] = "UNKNOWN"
    package["Classifier"] = "License :: OSI Approved"
    with pytest.raises(ValueError, match="nameless names no licence"):
        licences.licence(package)
