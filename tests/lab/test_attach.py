# SPDX-License-Identifier: GPL-2.0-only
"""Where Weir attaches and where it refuses to; it leaves no objects and does not touch those of others."""

import ctypes
import errno
import json
import os
import platform
import re
import shutil
import tempfile
import time

import pytest

from labnet import BUILD, WEIR, read_only, run

BLOCKED, OTHER = "203.0.113.10", "203.0.113.20"


@pytest.fixture(name="device")
def device_maker(pair):
    """device(NAME, WORDS...): ip link add on near, removed after the test."""
    made = []

    def make(name, *words):
        pair.link("add", name, *words)
        made.append(name)
        pair.link("set", name, "up")

    yield make
    for name in made:
        pair.near(["ip", "link", "del", name], check=False)


@pytest.fixture(name="foreign")
def foreign_program(pair):
    pair.attach_foreign()
    yield pair.xdp_names()["near0"]
    pair.detach_foreign()


def test_native_first(pair, weir):
    for changed in True, False:
        row = weir.json("attach", "near0")["interfaces"][0]
        assert (row["name"], row["mode"], row["changed"]) == ("near0", "native", changed)
    assert pair.xdp_names()["near0"] == "weir_root"
    assert "xdpgeneric" not in pair.link("show", "near0").stdout
    weir("detach")
    assert not pair.xdp_attached() and not weir.bpffs.exists()


def test_generic_on_demand(pair, weir):
    assert "generic mode" in weir("attach", "near0", "--mode", "generic").stdout
    assert "xdpgeneric" in pair.link("show", "near0").stdout
    line = weir.fails(3, "attach", "near0", "--mode", "native")
    assert "generic" in line
    weir("attach", "near0")


def test_a_driver_without_native_mode(pair, weir, device):
    """A bridge has no native mode: auto prints why it is slower, native is refused."""
    device("br0", "type", "bridge")
    line = weir.fails(2, "attach", "br0", "--mode", "native")
    assert "cannot attach to 'br0' in native mode: not supported" in line
    assert pair.xdp_names()["br0"] is None and not weir.bpffs.exists()
    done = weir("attach", "br0")
    assert "attached to br0, generic mode" in done.stdout
    assert "generic mode, slower: cannot attach to 'br0' in native mode" in done.stderr
    assert pair.xdp_names()["br0"] == "weir_root"


def test_a_bridge_is_warned_about_with_its_ports(pair, weir, device):
    device("br0", "type", "bridge")
    device("port7", "type", "veth", "peer", "name", "port8")
    pair.link("set", "port7", "master", "br0")
    assert "'br0' is a bridge" in (text := weir("attach", "br0").stderr) and "port7" in text


@pytest.mark.parametrize(
    "name, status, words",
    [("naer0", 1, "no interface 'naer0' (did you mean 'near0'?)"), ("near", 1, "'near0'"),
     ("", 1, "''"), ("n" * 300, 1, "no interface"), ("../near0", 1, "no interface"),
     ("lo", 3, "'lo' is the loopback interface")],
)
def test_interfaces_that_cannot_be(weir, name, status, words):
    assert words in weir.fails(status, "attach", name)
    assert not weir.bpffs.exists()


def test_only_ethernet(pair, weir):
    pair.near(["ip", "tuntap", "add", "tun7", "mode", "tun"])
    try:
        assert "'tun7' is not an Ethernet device (tun)" in weir.fails(3, "attach", "tun7")
    finally:
        pair.near(["ip", "tuntap", "del", "tun7", "mode", "tun"])


def devices_with_programs(pair):
    return {name for name, program in pair.xdp_names().items() if program}


@pytest.mark.parametrize("last", ["nope0", "lo"])
def test_all_or_none(pair, weir, device, last):
    device("near7", "type", "veth", "peer", "name", "far7")
    done = weir("attach", "near0", "near7", last, check=False)
    assert done.returncode in (1, 3)
    assert devices_with_programs(pair) == set() and not weir.bpffs.exists()
    weir("attach", "near0")
    assert weir("attach", "near7", last, check=False).returncode in (1, 3)
    assert devices_with_programs(pair) == {"near0"}


def test_two_interfaces_come_and_go_one_by_one(pair, weir, device):
    device("near7", "type", "veth", "peer", "name", "far7")
    weir("attach", "near0", "near7")
    assert devices_with_programs(pair) == {"near0", "near7"}
    weir("detach", "near0")
    assert devices_with_programs(pair) == {"near7"}
    assert "near0" in weir("detach", "near0").stderr  # the message is absent
    weir("detach", "near7")
    assert not weir.bpffs.exists()
    weir("detach")


# Other programs on the same interface


@pytest.mark.parametrize("mode", ["auto", "native", "generic"])
def test_another_program_is_not_pushed_aside(pair, weir, foreign, mode):
    line = weir.fails(3, "attach", "near0", "--mode", mode)
    assert f"'near0' already carries the XDP program '{foreign}'" in line and "share it: " in line
    assert pair.xdp_names()["near0"] == foreign and not weir.bpffs.exists()


def test_alone_says_why_everywhere(pair, weir):
    """Whether the hook is shared or exclusive depends on the kernel; attach, status and doctor must agree."""
    done = weir("attach", "near0", "-j")
    row = weir.json("status")["interfaces"][0]
    found = [f for f in weir.json("doctor", "near0")["findings"] if f["about"] == "sharing"]
    listed = pair.xdp_names()["near0"]
    assert json.loads(done.stdout)["interfaces"][0]["shared"] is row["shared"]
    if row["shared"]:
        assert listed == "xdp_dispatcher" and found[0]["level"] == "ok" and not done.stderr
        return
    why = row["alone_because"]
    assert listed == "weir_root" and found[0]["level"] == "note" and why in found[0]["text"]
    assert f"notice: 'near0' is not shared with other XDP programs: {why}" in done.stderr and not re.search(r"\bE[A-Z]{3,}\b", why)


@pytest.mark.parametrize("mode", ["xdpdrv", "xdpgeneric"])
def test_the_hint_takes_a_foreign_program_away(pair, weir, mode):
    pair.attach_foreign(mode)
    try:
        said = weir.fails(3, "attach", "near0")
        pair.link(*re.search(r"remove it first: ip link (.*)\)", said)[1].split())
        assert pair.xdp_names()["near0"] is None
    finally:
        pair.detach_foreign(mode)
    weir("attach", "near0")


def test_detach_takes_only_our_own(pair, weir):
    weir("attach", "near0")
    weir.cut()  # someone detaches our program
    pair.attach_foreign()
    try:
        before = pair.link("show", "near0").stdout
        assert "its program was already detached" in weir("detach").stdout
        assert pair.link("show", "near0").stdout == before
        weir("detach", "--force")
        assert pair.link("show", "near0").stdout == before
    finally:
        pair.detach_foreign()


def test_instances_do_not_take_each_other_away(pair, on, weir_on):
    other = weir_on(pair)
    line = other.fails(3, "attach", "near0")
    assert "already carries the XDP program 'weir_root'" in line
    assert pair.xdp_names()["near0"] != "weir_root" or f"weir -n {on.name} detach near0" in line
    other("detach", "--force")
    on("block", BLOCKED)
    assert pair.free(BLOCKED) == [False]


def test_a_policy_that_could_be_attached_nowhere(pair, on, weir_on, tmp_path):
    """It is the accepted one of its instance, but nothing says that it is active."""
    if on.json("status")["interfaces"][0]["shared"]:
        pytest.skip("interfaces are shared here")
    other = weir_on(pair)
    path = tmp_path / "edge.weir"
    path.write_text("interface near0\ndrop from 192.0.2.1\n")
    done = other("apply", path, check=False)
    revision = other.json("history")["current"]
    assert done.returncode == 3 and "already carries the XDP program" in done.stderr
    assert done.stdout == (f"{path} is not active: no interface of instance {other.name} is attached; "
                           f"the next attach restores it, revision {revision}\n")
    done = other("apply", path, "--confirm", check=False)
    assert done.stdout == f"{path} is not active: no interface of instance {other.name} is attached\n"
    assert not other.bpffs.exists()


# Restored entries


def test_detach_keeps_what_is_blocked_for_the_next_attach(pair, on):
    on("block", "many.lab", "198.51.100.0/24", "--note", "abuse 4711", "--origin", "ids")
    on("block", "192.0.2.1", "--for", "1h")
    on("block", "192.0.2.2", "--for", "1s")
    on("block", "192.0.2.3", "--volatile")
    on("allow", "198.51.100.3")
    before = on.json("list")["entries"]
    on("detach")
    assert pair.free("192.0.2.1") == [True]
    time.sleep(2.1)  # so that one of them expires meanwhile
    done = on("attach", "near0", "--max-entries", "1000")
    assert f"restored {len(before) - 2} overlay entries" in done.stdout
    gone = {"192.0.2.2", "192.0.2.3"}
    assert [(e["address"], e["kind"], e["holders"]) for e in on.json("list")["entries"]] == \
        [(e["address"], e["kind"], e["holders"]) for e in before if e["address"] not in gone]
    assert pair.free("192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.3", "198.51.100.9") == \
        [False, True, True, True, False]
    assert 3500 < on.entries()["192.0.2.1"]["left_s"] <= 3600


def test_more_than_fits_into_smaller_tables(on):
    on("block", "-f", "-", input="".join(f"192.0.2.{i}\n" for i in range(20)))
    on("detach")
    line = on.fails(3, "attach", "near0", "--max-entries", "10")
    assert "limit of 10" in line
    assert not on.pair.xdp_attached() and not on.bpffs.exists()
    on("attach", "near0", "--max-entries", "20")
    assert len(on.entries()) == 20
    assert "runs with --max-entries 20" in on.fails(3, "attach", "near0", "--max-entries", "30")


# A failure leaves nothing attached


@pytest.mark.parametrize(
    "words, status",
    [(["nothing.lab"], 1), (["1.2.3"], 1), (["10.77.0.2"], 3), (["--mode", "quick", BLOCKED], 1),
     (["--resolver", "10.99.0.1", "--resolver-timeout", "100ms", "blocked.lab"], 2),
     (["-i", "nope0", BLOCKED], 1), (["--dry-run", BLOCKED], 1)],
)
def test_block_that_fails_leaves_nothing_attached(pair, weir, words, status):
    done = weir("block", "-i", "near0", *words, check=False)
    assert done.returncode == status, done.stderr
    assert not pair.xdp_attached() and not weir.bpffs.exists()


def test_block_that_cannot_save_leaves_nothing_attached(pair, weir):
    (weir.state / "overlay.new").mkdir(parents=True)
    assert weir("block", "-i", "near0", BLOCKED, check=False).returncode == 2
    assert not pair.xdp_attached() and not weir.bpffs.exists()


def test_block_attaches_when_told_to(pair, weir):
    weir("block", "-i", "near0", "blocked.lab")
    assert pair.free(BLOCKED, OTHER) == [False, True]
    weir("block", "-i", "near0", OTHER)
    assert pair.free(BLOCKED, OTHER) == [False, False]


def test_without_an_interface_block_names_the_one_to_add(pair, weir):
    for command in ("block", BLOCKED), ("block", "--for", "1m", BLOCKED):
        line = weir.fails(1, *command)
        assert "not attached to any interface" in line and "-i near0" in line
    assert not pair.xdp_attached() and not weir.bpffs.exists()


# Pinned objects of others


def layout_in(meta, layout):
    """Writes another layout version into the pinned meta map."""
    row = run(["bpftool", "-j", "map", "lookup", "pinned", meta, "key", "0", "0", "0", "0"]).stdout
    value = json.loads(row)["value"]
    value[:4] = [f"0x{byte:02x}" for byte in layout.to_bytes(4, "little")]
    run(["bpftool", "map", "update", "pinned", meta, "key", "0", "0", "0", "0", "value", *value])


def test_pins_of_another_version(pair, on):
    on("block", BLOCKED)
    layout_in(on.bpffs / "meta", 99)
    for command in ("list",), ("block", OTHER), ("attach", "near0"), ("detach",), ("status",):
        line = on.fails(3, *command)
        assert "another version of Weir (layout 99" in line and "detach --force" in line
    assert pair.free(BLOCKED, OTHER) == [False, True]
    on("detach", "--force")
    assert not pair.xdp_attached() and not on.bpffs.exists()
    on("attach", "near0")
    assert pair.free(BLOCKED) == [False]


@pytest.mark.parametrize("size", [4, 4096])
@pytest.mark.parametrize("layout", [6, 99])
def test_pins_whose_meta_has_another_size(pair, on, size, layout):
    """The kernel writes a value of the size of the map, whatever room the reader has."""
    meta = on.bpffs / "meta"
    meta.unlink()
    run(["bpftool", "map", "create", meta, "type", "array", "key", "4", "value", size, "entries", "1",
         "name", "weir_meta"])
    run(["bpftool", "map", "update", "pinned", meta, "key", "0", "0", "0", "0", "value", layout,
         *["0"] * 3, *["255"] * (size - 4)])
    sanitized = [str(BUILD / "asan/weir"), *on.argv("list")[1:]]
    for argv in on.argv("block", OTHER), sanitized:
        done = run(argv, check=False)
        assert done.returncode == 3 and f"(layout {layout}" in done.stderr, done.stderr
    on("detach", "--force")
    assert not pair.xdp_attached() and not on.bpffs.exists()


def test_a_lost_pin_is_named_with_the_way_out(pair, on):
    (on.bpffs / "hosts6").unlink()
    line = on.fails(2, "list")
    assert "'hosts6'" in line and "detach --force" in line
    on("detach", "--force")
    assert not pair.xdp_attached() and not on.bpffs.exists()


def test_another_network_namespace_is_refused(pair, on):
    argv = on.argv("block", BLOCKED)
    argv[argv.index(pair.near_netns)] = pair.far_netns
    done = run(argv, check=False)
    assert done.returncode == 3 and "another network namespace" in done.stderr
    assert f"(weir -N {pair.near_netns} enters the namespace, " in done.stderr
    assert on.entries() == {}


def test_inside_ip_netns_exec_the_way_is_shown(pair, weir):
    """A mount there would end with the command, and the program would stay attached with empty program
    arrays."""
    for command in ("attach", "near0"), ("block", "-i", "near0", BLOCKED), ("list",), ("detach",):
        argv = [WEIR, "-n", weir.name, *command]
        done = pair.near(argv, dns=True, check=False)
        assert done.returncode == 3, done.stdout
        assert f"use weir -N {pair.near_netns}" in done.stderr
        assert not pair.xdp_attached()


# Without privileges


@pytest.fixture(scope="module", name="copy_of_weir")
def copy_that_anybody_can_run():
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    yield shutil.copy(WEIR, folder)
    shutil.rmtree(folder)


COMMANDS = [("block", BLOCKED), ("unblock", BLOCKED), ("attach", "near0"), ("detach",), ("list",),
            ("status",), ("stats",), ("explain", BLOCKED), ("watch",), ("bypass",),
            ("block", "-i", "near0", BLOCKED)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_privilege(pair, on, copy_of_weir, command):
    before = on.json("list")
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = pair.near([*unprivileged, copy_of_weir, "-n", on.name, *command], check=False)
    refused(done)
    assert "privilege" in done.stderr or "permission denied" in done.stderr
    assert on.json("list") == before and pair.xdp_attached()


def refused(done):
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("weir: ")


def without_bpf():
    """For the child: the system call bpf() does not exist."""
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    load, jump, leave = 0x20, 0x15, 0x06
    allow, no_such_call = 0x7FFF0000, 0x00050000 | errno.ENOSYS
    lines = [(load, 0, 0, 0), (jump, 0, 1, number), (leave, 0, 0, no_such_call), (leave, 0, 0, allow)]

    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8),
                    ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint16), ("lines", ctypes.POINTER(Filter))]

    libc = ctypes.CDLL(None)
    program = Program(len(lines), (Filter * len(lines))(*lines))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.byref(program)) == 0  # PR_SET_SECCOMP, a filter


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_kernel_without_bpf(pair, on, command):
    before = on.json("list")
    done = on(*command, check=False, preexec_fn=without_bpf)
    refused(done)
    assert "no BPF" in done.stderr
    assert on.json("list") == before and pair.xdp_attached()


def test_a_machine_that_was_never_tried(pair, weir):
    """setarch lets uname(2) report another machine."""
    for command in (("attach", "near0"), ("doctor",)):
        done = run(["setarch", "i686", *weir.argv(*command)], check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 2 if command[0] == "attach" else done.returncode, said
        assert "this machine (i686) is not supported: Weir runs on x86-64 (x86_64) and arm64 (aarch64)" in said
    assert not pair.xdp_attached() and not weir.bpffs.exists()


@pytest.mark.parametrize(
    "command", [("attach", "near0"), ("block", "-i", "near0", BLOCKED)], ids=" ".join
)
def test_a_kernel_without_bpf_from_the_start(pair, weir, command):
    done = weir(*command, check=False, preexec_fn=without_bpf)
    refused(done)
    assert "has no BPF" in done.stderr
    assert not pair.xdp_attached() and not weir.bpffs.exists()


def test_detach_warns_once_on_a_read_only_disk(on):
    with read_only(on.state):
        warned = on("detach").stderr
        assert warned.count("weir restore attaches it again") == 1, warned
