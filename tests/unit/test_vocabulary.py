import pytest

from tests.vocabulary import dialect_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def tell(asked_of, TolD): ...", ["tell", "asked", "TolD"]),
        ("class AskedTerms:  # by\n    ...  # What is asked, by and by.", ["Asked", "What is asked", "by and by"]),
        ("found = known.taken = [each for wanted_id in x]", ["found", "taken", "wanted_id"]),
        ("def is_found(task, basket): raise JobNotFound('taken, not found')", []),
        ("dead_letters = letters", []),
    ],
)
def test_dialect_is_seen_in_names_and_prose(tmp_path, text, words):
    (tmp_path / "module.py").write_text(text)
    assert [each.partition(": ")[2] for each in dialect_of(tmp_path / "module.py")] == words
