# SPDX-License-Identifier: GPL-2.0-only
"""contrib/systemd: systemd understands the units, and they stay in their sandbox."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ("weir@.service", "weir-restore@.service")
EXPOSURE_MAX = 4.0


@pytest.fixture(name="folder")
def units_of_an_instance(tmp_path):
    """The units of the instance x, with a command that exists."""
    for unit in UNITS:
        text = subprocess.run([ROOT / "scripts/unit", "/usr/bin", unit], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert "@S" not in text
        text = text.replace("/usr/bin/weir", "/usr/bin/env weir").replace("man:weir", "https://man/weir")
        (tmp_path / unit.replace("@", "@x")).write_text(re.sub(r"man:\S+", "", text))
    return tmp_path


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_understands_them(folder):
    done = subprocess.run(["systemd-analyze", "verify", *folder.iterdir()], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "weir" in line], done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_they_are_exposed_no_more_than_they_need(folder):
    for unit in folder.iterdir():
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True, check=False)
        found = re.search(r"exposure level for .*: ([\d.]+)", done.stdout)
        assert found and float(found[1]) <= EXPOSURE_MAX, done.stdout
