# SPDX-License-Identifier: GPL-2.0-only
"""Weir in containers of podman, and beside a published port of Docker."""

import contextlib
import json
import shutil
import subprocess
import tarfile

import pytest

from labnet import running_lab, until
from conftest import FOLDERS

SOURCE = "100.64.0.1"
SERVER = "203.0.113.10"
MISSING = ("this container has no BPF file system of the host: start it with -v /sys/fs/bpf:/sys/fs/bpf "
           "-v /run/weir:/run/weir -v /var/lib/weir:/var/lib/weir")


@pytest.fixture(name="contained")
def weir_in_containers(pair, weir, podman):
    """contained("block", ADDRESS): weir in a new container, on the instance of the test."""
    def one(*words, folders=FOLDERS, check=True):
        return podman("run", *podman.options(pair.near_netns, folders), "-n", weir.name, *words, check=check)
    return one


def test_what_a_container_does_stays(pair, weir, contained):
    """One container attaches, one blocks, one lists, and the host continues with the same instance."""
    assert "attached to near0" in contained("attach", "near0").stdout
    assert pair.free(SOURCE) == [True]
    assert "saved" in contained("block", SOURCE).stdout
    assert pair.free(SOURCE) == [False]
    entries = json.loads(contained("-j", "list").stdout)["entries"]
    assert [one["address"] for one in entries] == [SOURCE] == list(weir.entries())
    weir("unblock", SOURCE)
    assert json.loads(contained("-j", "list").stdout)["entries"] == []
    contained("detach")
    assert not pair.xdp_attached()


@pytest.mark.parametrize("without", FOLDERS[:1], ids=["bpf"])
def test_without_the_folders_of_the_host(pair, contained, without):
    done = contained("attach", "near0", folders=[one for one in FOLDERS if one != without], check=False)
    assert done.returncode == 3 and MISSING in done.stderr, done
    assert not pair.xdp_attached()


def busybox_archive(folder):
    """An image with busybox and a file `hello`."""
    archive, hello = folder / "bb.tar", folder / "hello"
    hello.write_text("hello")
    with tarfile.open(archive, "w") as tar:
        tar.add(shutil.which("busybox"), "bin/busybox")
        tar.add(hello, "hello")
    return archive


@contextlib.contextmanager
def agent_in(podman, pair, weir, folder):
    """The agent as process 1 of a container."""
    (folder / "etc").mkdir()
    (folder / "etc" / f"{weir.name}.weir").write_text(f"interface near0\ndrop from {SOURCE}\n")
    options = podman.options(pair.near_netns)
    options[options.index("weir"):] = ["-v", f"{folder}/etc:/etc/weir:ro", "--name", weir.name, "weir", "-n", weir.name, "run"]
    with subprocess.Popen([*map(str, podman.base), "run", *map(str, options)], env=podman.environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            podman("kill", weir.name, check=False)


def test_agent_as_process_1(pair, weir, podman, contained, tmp_path):
    with agent_in(podman, pair, weir, tmp_path) as process:
        until(lambda: pair.xdp_attached() and pair.free(SOURCE) == [False], 30)
        until(lambda: "agent" in weir.json("status"), 10)
        policy = tmp_path / "etc" / f"{weir.name}.weir"
        policy.write_text(policy.read_text().replace(SOURCE, "100.64.0.2"))
        until(lambda: pair.free(SOURCE, "100.64.0.2") == [True, False], 20)
        assert contained("status", check=False).returncode == 0
        podman("stop", "--time", "20", weir.name)
        assert process.wait(20) == 0, process.stdout.read()
    assert pair.free(SOURCE, "100.64.0.2") == [True, False]  # the end of the container changes no verdict
    weir("forget", "--agent", check=False)


@pytest.fixture(name="call")
def call_of_a_container(podman, scratch):
    """call(NETWORK, ADDRESS): what a connection from a new container of podman ends with."""
    podman("import", busybox_archive(scratch), "bb")

    def one(network, address):
        done = podman("run", "--rm", "--network", network, "bb", "/bin/busybox", "nc", "-w", "2", address, "9", check=False)
        return done.stderr.strip().rsplit(": ", 1)[-1]
    return one


def test_calls_of_containers(pair, weir, call):
    """A container of podman in the namespace of the instance, and one with a network of its own."""
    own = f"ns:/run/netns/{pair.near_netns}"
    weir("attach", "near0")
    assert (call(own, SERVER), call("none", SERVER)) == ("Connection refused", "Network is unreachable")
    weir("block", "--out-only", SERVER)
    assert (call(own, SERVER), call("none", SERVER)) == ("Operation not permitted", "Network is unreachable")
    weir("block", "--out-only", SERVER, "--all-namespaces", "--force")
    assert (call(own, SERVER), call("none", SERVER)) == ("Operation not permitted", "Operation not permitted")
    weir("unblock", "--out", SERVER)
    assert (call(own, SERVER), call("none", SERVER)) == ("Connection refused", "Network is unreachable")


@pytest.mark.parametrize("userland", [False, True], ids=["rules", "proxy"])
def test_a_published_port_of_docker(docker_in, userland):
    """XDP sees a packet before Docker's rules send it to a container: entries and policies hold for published ports."""
    lab, weir, docker = docker_in(userland)
    docker("run", "-d", "-p", "8080:80", "bb", "/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/")
    url = f"http://{lab.near4}:8080/hello"

    def answers():
        return lab.far(["curl", "-s", "--max-time", "2", url], check=False).stdout == "hello"

    until(answers, 20, "an answer")
    assert "DNAT" in lab.near(["iptables", "-t", "nat", "-S", "DOCKER"]).stdout
    weir("attach", "near0")
    assert answers()
    weir("block", lab.far4, "--force")
    assert not answers()
    weir("unblock", lab.far4)
    assert answers()
    policy = lab.folder / "p.weir"
    policy.write_text("interface near0\ndrop proto tcp to port 8080\n")
    weir("apply", policy)
    assert not answers()
    weir("detach")
    assert answers()


@pytest.fixture(name="docker_in")
def docker_factory(scratch, start_docker):
    """docker_in(USERLAND): a lab with a daemon on its near side, which has the image bb of busybox."""
    with contextlib.ExitStack() as stack:
        def make(userland):
            lab = stack.enter_context(running_lab())
            lab.folder = scratch
            weir = stack.enter_context(start_docker.weir(lab))
            docker = stack.enter_context(start_docker(lab, userland))
            docker("import", busybox_archive(scratch), "bb")
            return lab, weir, docker
        yield make
