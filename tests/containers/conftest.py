# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the container tests: the pair of the lab, the image, and the engines."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = ROOT / "tests" / "lab"
sys.path.insert(0, str(LAB))

from labnet import Weir, fixtures_of_the_lab, run, until  # noqa: E402

FOLDERS = "/sys/fs/bpf", "/run/weir", "/var/lib/weir"
CAPABILITIES = "BPF,NET_ADMIN,PERFMON,SYS_ADMIN,NET_RAW,SYS_RESOURCE,IPC_LOCK"


_LAB = fixtures_of_the_lab()
root, shared_pair, weir_instance = _LAB.root, _LAB.shared_pair, _LAB.weir_instance
attached_weir = _LAB.attached_weir


@pytest.fixture(scope="session", name="scratch")
def scratch_folder():
    with tempfile.TemporaryDirectory(prefix="weir-containers-") as folder:
        yield pathlib.Path(folder)


class Podman:
    """Containers in the network namespace of the near host, from an image in a store of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.base = ["podman", "--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "overlay",
                     "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
        settings = folder / "containers.conf"
        # Not more than a machine that is a container itself may have.
        settings.write_text('[containers]\ndefault_ulimits=["nofile=1024:4096","nproc=1024:1024"]\n')
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings)}

    def __call__(self, *words, check=True):
        done = subprocess.run([*map(str, self.base), *map(str, words)], env=self.environment, capture_output=True, text=True,
                              timeout=120, check=False)
        assert not check or done.returncode == 0, done
        return done

    def options(self, netns, folders=FOLDERS):
        mounts = [word for folder in folders for word in ("-v", f"{folder}:{folder}")]
        return ["--rm", "--network", f"ns:/run/netns/{netns}", "--cap-drop", "ALL", "--cap-add", CAPABILITIES, *mounts, "weir"]


@pytest.fixture(scope="session", name="podman")
def podman_with_image(scratch):
    """`scripts/image` has been run by `make containers`."""
    engine = Podman(scratch)
    engine("build", "-q", "-t", "weir", ROOT / os.environ.get("O", "build") / "image")
    yield engine
    engine("rmi", "--all", "--force", check=False)
    shutil.rmtree(scratch / "store", ignore_errors=True)


class Docker:
    """A daemon in the network namespace of a lab's near host, with its own rules there."""

    def __init__(self, folder, netns, userland):
        self.folder, self.netns = folder, netns
        self.socket = f"unix://{folder}/socket"
        self.argv = ["nsenter", f"--net=/run/netns/{netns}", "unshare", "--mount", "/usr/sbin/dockerd", "--data-root", folder / "data",
                     "--exec-root", folder / "exec", "--pidfile", folder / "pid", "--host", self.socket, "--ip6tables=false",
                     f"--userland-proxy={str(userland).lower()}"]

    def __call__(self, *words, **options):
        return run(["/usr/bin/docker", "-H", self.socket, *words], **options).stdout.strip()

    def answers(self):
        return run(["/usr/bin/docker", "-H", self.socket, "version"], check=False).returncode == 0


class Start:
    """start(LAB, USERLAND) and start.weir(LAB) are contexts."""

    def __init__(self, folder):
        self.folder = folder

    @contextlib.contextmanager
    def __call__(self, lab, userland):
        folder = self.folder / f"docker-{userland}"
        folder.mkdir()
        docker = Docker(folder, lab.near_netns, userland)
        with (folder / "log").open("w") as log, \
                subprocess.Popen([str(word) for word in docker.argv], stdout=log, stderr=log) as daemon:
            try:
                until(lambda: daemon.poll() is not None or docker.answers(), 60, "dockerd")
                assert daemon.poll() is None, (folder / "log").read_text()
                yield docker
            finally:
                for one in docker("ps", "-aq", check=False).split():
                    docker("rm", "--force", one, check=False)
                daemon.terminate()
                daemon.wait(60)

    @contextlib.contextmanager
    def weir(self, lab):
        instance = Weir(lab)
        try:
            yield instance
        finally:
            instance.remove()


@pytest.fixture(name="start_docker")
def docker_starter(scratch):
    return Start(scratch)
