"""The wheel alone, in an empty environment: the app of docs/own-app.md, deployed into the local AWS, delivers a job."""

import os
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from dueline.config.deployment import of_settings
from local.deploy import deploy
from local.emulator import Emulator
from local.endpoints import find
from local.signing_proxy import signing_proxy
from local.template import ROOT
from tests.acceptance.inbox import Inbox
from tests.e2e.newcomer import code_of

# Installs 30 packages; `make release` and `make soak` run it.
pytestmark = pytest.mark.thorough

[APP] = code_of("docs/own-app.md", "python")
[CLI] = re.findall(r"aws-cdk@[\d.]+", (ROOT / "docs" / "own-app.md").read_text())
SCHEDULE = """
import sys
from dueline import Client
print(Client.connect("shop", url=sys.argv[1]).schedule("emails", {"to": "ann"}).id)
"""


def run(*command, cwd=ROOT):
    # Nothing of this repository is to be imported in the place of what is installed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """What `make release` built, in the folder that DUELINE_DIST names, or else what is built now."""
    if built := os.environ.get("DUELINE_DIST"):
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("dist")
    uv = Path(sys.executable).with_name("uv")
    run(uv, "build", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    [wheel] = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and what it requires, in the versions that are tested."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    tested = folder / "tested.txt"
    # A constraint has no extras.
    tested.write_text(re.sub(r"\[.*?\]", "", (ROOT / "requirements.txt").read_text()))
    run(python, "-m", "pip", "install", "--quiet", "--constraint", tested, f"{wheel}[cdk]")
    return python


def test_wheel_and_sdist_hold_the_package(dist, wheel):
    tracked = set(run("git", "ls-files", "dueline").splitlines())
    held = {name for name in ZipFile(wheel).namelist() if name.startswith("dueline/")}
    assert tracked - held == {"dueline/functions/requirements.txt"}
    assert held <= tracked
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    assert held | {"README.md", "LICENSE", "pyproject.toml"} <= in_sdist


def test_app_of_the_page_delivers_a_job(python, tmp_path):
    (tmp_path / "app.py").write_text(APP)
    cdk = ("npx", "--yes", CLI, "synth", "--quiet", "--app", f"{python} app.py", "--context", "libraries=none")
    run(*cdk, cwd=tmp_path)
    deployment = of_settings({"name": "shop", "queues": {"emails": {}, "invoices": {}}})
    with Emulator(log=tmp_path / "log") as emulator:
        deploy(emulator, tmp_path / "cdk.out")
        endpoints = find(emulator, deployment)
        with signing_proxy(endpoints.api) as url:
            id = run(python, "-c", SCHEDULE, url, cwd=tmp_path).strip()
        inbox = Inbox(emulator.client("sqs"), deployment.names.queue("emails"), threads=1).open()
        assert inbox.wait_for(id).body == '{"to":"ann"}'
        inbox.close()
