# SPDX-License-Identifier: GPL-2.0-only
"""scripts/setup where there is no apt: the commands of the distribution, marked as not tested."""
import pathlib
import subprocess

import pytest

SETUP = pathlib.Path(__file__).parents[2] / "scripts" / "setup"


def said_on(tmp_path, release):
    (tmp_path / "os-release").write_text(release)
    done = subprocess.run(["/bin/bash", SETUP, "build"], env={"PATH": str(tmp_path), "OS_RELEASE": str(tmp_path / "os-release")},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "apt not found" in done.stderr, done.stderr
    return done.stderr


@pytest.mark.parametrize("release, command, package", [
    ("ID=fedora\n", "dnf install gcc", "libxdp-devel"),
    ('ID="rhel"\nID_LIKE="fedora"\n', "--set-enabled crb", "epel-release"),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install gcc", "libmnl-devel"),
    ("ID=arch\n", "pacman -S --needed base-devel", "xdp-tools"),
    ("ID=manjaro\nID_LIKE=arch\n", "pacman -S", "libmaxminddb"),
    ("ID=alpine\n", "apk add build-base", "libxdp-dev"),
])
def test_the_packages_of_other_distributions(tmp_path, release, command, package):
    said = said_on(tmp_path, release)
    assert "not tested" in said and command in said and package in said


def test_an_unknown_distribution_gets_the_names_of_debian(tmp_path):
    assert "names in Debian" in said_on(tmp_path, "ID=gentoo\n")
