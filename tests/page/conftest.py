# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests of the page: Debian's Chromium without a screen, as a user who is not root, and axe-core."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lab"))

from labnet import fixtures_of_the_lab, run, until  # noqa: E402

from browser import Browser  # noqa: E402

USER = "daemon"
AXE = "axe-core@4.10.2"  # npm

_LAB = fixtures_of_the_lab()
root, shared_pair, weir_instance = _LAB.root, _LAB.shared_pair, _LAB.weir_instance
attached_weir = _LAB.attached_weir


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def answers(port):
    with socket.socket() as sock:
        return not sock.connect_ex(("127.0.0.1", port))


@pytest.fixture(scope="session", name="driver_port")
def driver_port_of():
    """A running chromedriver, whose browsers are of another user than root, in a sandbox."""
    user, port = pwd.getpwnam(USER), free_port()
    with tempfile.TemporaryDirectory(prefix="weir-page-") as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        argv = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--",
                "chromedriver", f"--port={port}"]
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "TZ": "UTC"}
        with subprocess.Popen(argv, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True) as process:
            try:
                until(lambda: answers(port), what="chromedriver")
                yield port
            finally:
                process.terminate()


@pytest.fixture(name="browser")
def browser_of(driver_port):
    """A browser whose console has to stay empty."""
    browser = Browser(driver_port)
    try:
        yield browser
        assert browser.console() == []
    finally:
        browser.quit()


@pytest.fixture(scope="session", name="axe")
def axe_of(tmp_path_factory):
    """The text of axe-core."""
    if not shutil.which("npm"):
        pytest.skip("no npm: axe-core is not available")
    folder = tmp_path_factory.mktemp("axe")
    done = run(["npm", "pack", "--silent", AXE], cwd=folder, check=False, timeout=120)
    if done.returncode:
        pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip()[-200:]}")
    with tarfile.open(folder / done.stdout.split()[-1]) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()
