"""What the local run synthesized is kept as long as nothing changes that it is made of."""

from pathlib import Path

import pytest

from local import template
from local.template import SynthesisError, assembly_of


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in small."""
    root = tmp_path / "root"
    for name in ("app.py", "cdk.json", "dueline/model.py", "functions/tick.py", "infra/stacks.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    monkeypatch.setattr(template, "ROOT", root)
    return root


@pytest.fixture
def made(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synthesized: the settings, each time."""
    made: list[str] = []

    def synthesize(queues: Path, *, out: Path) -> Path:
        made.append(queues.read_text())
        out.mkdir()
        (out / "manifest.json").write_text(made[-1])
        return out

    monkeypatch.setattr(template, "synthesize", synthesize)
    return made


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    queues = tmp_path / "queues.yaml"
    queues.write_text("queues: {emails: }")
    return queues


def test_unchanged_sources_are_synthesized_once(queues: Path, made: list[str], tmp_path: Path) -> None:
    first, again = (assembly_of(queues, kept=tmp_path / "kept") for _ in range(2))
    assert (first, made) == (again, ["queues: {emails: }"])
    assert (first / "manifest.json").read_text() == "queues: {emails: }"


@pytest.mark.parametrize(
    "file", ["root/app.py", "root/cdk.json", "root/dueline/model.py", "root/functions/tick.py", "root/infra/stacks.py"]
)
def test_changed_source_is_synthesized_again(file, queues, made, tmp_path) -> None:
    assembly_of(queues, kept=tmp_path / "kept")
    (tmp_path / file).write_text("other")
    assembly_of(queues, kept=tmp_path / "kept")
    assert len(made) == 2


def test_changed_settings_or_libraries_synthesize_again(queues, made, tmp_path, monkeypatch) -> None:
    assembly_of(queues, kept=tmp_path / "kept")
    queues.write_text("queues: {invoices: }")
    told = (assembly_of(queues, kept=tmp_path / "kept") / "manifest.json").read_text()
    assert told == "queues: {invoices: }"
    monkeypatch.setattr(template, "version", lambda library: f"another {library}")
    assembly_of(queues, kept=tmp_path / "kept")
    assert len(made) == 3


def test_newest_four_assemblies_are_kept(queues, made, tmp_path) -> None:
    for number in range(6):
        queues.write_text(f"queues: {{q{number}: }}")
        newest = assembly_of(queues, kept=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 4
    assert newest.exists()


def test_failed_synthesis_is_not_kept(queues, made, root, tmp_path, monkeypatch) -> None:
    def fail(queues: Path, *, out: Path) -> Path:
        out.mkdir()
        raise SynthesisError("no")

    with monkeypatch.context() as patch:
        patch.setattr(template, "synthesize", fail)
        with pytest.raises(SynthesisError):
            assembly_of(queues, kept=tmp_path / "kept")
    assembly_of(queues, kept=tmp_path / "kept")
    assert len(made) == 1
