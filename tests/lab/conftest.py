# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the lab tests: a lab of two hosts, its names, and a Weir instance on the near side."""

import collections
import contextlib
import os
import pathlib
import resource
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import leftovers  # noqa: E402
from balancerlab import policy, running_balancer, running_node  # noqa: E402
from labnet import Pair, Weir, running_lab  # noqa: E402
from policylab import Policies  # noqa: E402

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # programs inherit what is ignored, as by nohup

TEST_S = int(os.environ.get("LAB_TEST_S", "900"))  # a quick one takes a second, the longest two minutes
LONGEST = ("test_names", "test_names_failures", "test_via_path", "test_health", "test_health_states",
           "test_refresh_policy", "test_block")  # over a minute
# Files that several workers share: each test for itself, each lab for itself, or in so many parts.
EACH_TEST = ("test_names", "test_names_failures", "test_refresh_policy")
EACH_LAB = ("test_via_path",)
PARTS = {"test_health": 2, "test_health_states": 2}


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures times; tests/run runs it when nothing else runs")


def group_of(item, number):
    """The name of the tests that one worker runs one after the other; `number` counts those of a file."""
    stem = item.path.stem
    if stem in EACH_TEST:
        return f"{stem}-{number}"
    if stem in EACH_LAB:
        return f"{stem}-{item.callspec.params.get('balancer')}" if hasattr(item, "callspec") else stem
    return f"{stem}-{number % PARTS[stem]}" if stem in PARTS else stem


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """The longest files first, so that no worker runs one at the end."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    numbers = collections.Counter()
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item, numbers[item.path.stem])))
        numbers[item.path.stem] += 1


class Hangs(Exception):
    pass


def hang(*_):
    raise Hangs(f"the test runs for more than {TEST_S} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol():
    """A test that hangs fails, with the place where it waits; all others are run."""
    signal.signal(signal.SIGALRM, hang)
    signal.alarm(TEST_S)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session", autouse=True)
def root():
    if os.geteuid():
        pytest.exit("labs need root", returncode=1)
    leftovers.mark()


@pytest.fixture(scope="session", name="pair")
def shared_pair():
    """One lab for all tests that restore its state."""
    with running_lab() as lab:
        yield lab


@pytest.fixture(name="lab")
def lab_factory():
    """lab(mtu=9000) creates a lab for one test and removes it afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_lab(**options))


@pytest.fixture(autouse=True)
def restored_names(request):
    """The next test finds the records of the shared lab as they were, whoever has changed them: a test or a fixture."""
    pair = request.getfixturevalue("pair") if "pair" in request.fixturenames else None
    yield
    if isinstance(pair, Pair) and pair.has_changed_names:
        pair.dns("reset")


@pytest.fixture
def dns(pair):
    """dns(NAME, ADDRESS...) changes records for one test."""
    return pair.dns


@pytest.fixture(name="weir")
def weir_instance(pair):
    """weir("block", "192.0.2.1", check=True) runs on the near side of the shared lab."""
    instance = Weir(pair)
    yield instance
    instance.remove()


@pytest.fixture(name="on")
def attached_weir(weir):
    """The same, attached to near0, with small tables, which are created and removed faster."""
    weir("attach", "near0", "--max-entries", "1000")
    return weir


@pytest.fixture(name="apply")
def policies(weir, tmp_path):
    """apply(TEXT, OPTION...) applies a policy for near0."""
    return Policies(weir, tmp_path)


@pytest.fixture(name="weir_on")
def weir_on_lab():
    """weir_on(LAB) creates an instance on another lab than the shared one."""
    with contextlib.ExitStack() as stack:

        def make(lab):
            instance = Weir(lab)
            stack.callback(instance.remove)
            return instance

        yield make


@pytest.fixture(scope="module", name="balancer")
def shared_balancer(request):
    """The lab of a load balancer, for all tests of a module; BALANCER of the module has its options."""
    with running_balancer(**getattr(request.module, "BALANCER", {})) as lab:
        yield lab


@pytest.fixture(name="node")
def balancing_node(balancer):
    """Weir on the balancer of that lab, without a policy."""
    with running_node(balancer) as node:
        yield node


@pytest.fixture(scope="module")
def many_descriptors():
    """For tests with thousands of clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(name="serve")
def served(balancer, node, tmp_path):
    """serve(LINE, ...) applies the service with these options; names of backends to numbers."""
    path = tmp_path / "web.weir"

    def apply(*lines, backends=(1, 2, 3), options=(), **more):
        path.write_text(policy(balancer, backends, "idle 2s", "pins 65536", *lines, **more))
        node("apply", path, *options)
        return path

    return apply
