"""The tutorial, and README's commands, as a newcomer types them."""

from pathlib import Path

from local.template import ROOT
from tests.e2e.newcomer import blocks, reader

TUTORIAL = blocks((ROOT / "docs" / "tutorial.md").read_text())
README = blocks((ROOT / "README.md").read_text())


def test_tutorial_works_as_typed(tmp_path: Path) -> None:
    [commands] = [block for block in README if "make -s env" in block.text]
    with reader(tmp_path) as newcomer:
        newcomer.follow(TUTORIAL[:-1], folder="shop")
        newcomer.terminal("README").type(commands.text)
        newcomer.follow(TUTORIAL[-1:], folder="shop")
