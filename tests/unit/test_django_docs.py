"""What docs/django.md shows works, with Django itself."""

import os
import subprocess
import sys

import pytest

from tests.unit.test_testing import ROOT, files_of
from tests.waiting import HANG_SECONDS

PACKAGES = ("shop", "shop/management", "shop/management/commands", "shop/migrations")


@pytest.fixture
def manage(tmp_path):
    """Runs a command of Django in the page's project; returns what it printed."""
    files = {f"{package}/__init__.py": "" for package in PACKAGES} | files_of("django")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "DJANGO_SETTINGS_MODULE": "settings"}

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        return done.stdout + done.stderr

    run("-m", "django", "makemigrations", "shop")
    return run


def test_page_shows_tests_that_pass(manage):
    assert "Ran 4 tests" in (output := manage("-W", "error", "-m", "django", "test")), output
    assert output.splitlines()[-2] == "OK", output


def test_command_and_module_have_the_worker(manage):
    assert "Run the jobs of all queues" in manage("-m", "django", "work", "--help")
    assert manage("-c", "import shop.main as main; print(len(main.worker._chosen(None)))") == "1\n"
