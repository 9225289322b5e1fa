"""What Dueline uses is listed, and under licences that bind nobody who uses Dueline."""

import re
from email.message import Message

import pytest

from docs import licences

# MPL 2.0 asks whoever changes such a file to show it. Nobody does here, and none is with the library or deployed.
TO_BUILD_AND_TEST_ALONE = {"MPL-2.0", "CNRI-Python"}
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"}


def _sections() -> dict[str, list[str]]:
    parts = re.split(r"^## (.+)$", licences.page(), flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"^\| [^|]+ \| \d[^|]* \| ([^|]+) \|$", text, re.MULTILINE)
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_page_lists_what_is_pinned() -> None:
    assert licences.PAGE.read_text() == licences.page(), "run python -m docs.licences"


def test_no_licence_asks_anything_of_users_but_to_be_named() -> None:
    for title, found in _sections().items():
        allowed = PERMISSIVE | (TO_BUILD_AND_TEST_ALONE if title.startswith("To ") else set())
        unknown = {each for told in found for each in re.split(r" AND | OR ", told.strip("()")) if each not in allowed}
        assert (title, unknown, bool(found)) == (title, set(), True)


def test_a_package_without_a_licence_is_found() -> None:
    package = Message()
    package["Name"] = "nameless"
    package["License"] = "UNKNOWN"
    package["Classifier"] = "License :: OSI Approved"
    with pytest.raises(ValueError, match="nameless tells no licence"):
        licences.licence(package)
