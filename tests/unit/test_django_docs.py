"""What docs/django.md shows works, with Django itself."""

import os
import subprocess
import sys

from tests.unit.test_testing import ROOT, files_of
from tests.waiting import HANG_SECONDS

PACKAGES = ("shop", "shop/management", "shop/management/commands", "shop/migrations")


def test_page_shows_tests_that_pass(tmp_path):
    for name, text in ({f"{package}/__init__.py": "" for package in PACKAGES} | files_of("django")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "DJANGO_SETTINGS_MODULE": "settings"}
    of = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True, "timeout": HANG_SECONDS}
    subprocess.run([sys.executable, "-m", "django", "makemigrations", "shop"], check=True, **of)
    done = subprocess.run([sys.executable, "-W", "error", "-m", "django", "test"], **of)
    assert "Ran 4 tests" in done.stderr, done.stdout + done.stderr
    assert done.stderr.splitlines()[-2] == "OK", done.stderr
