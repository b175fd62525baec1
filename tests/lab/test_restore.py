# SPDX-License-Identifier: GPL-2.0-only
"""weir restore: after a reboot, what was there before is there again."""

import shutil

import pytest

from labnet import run
from statefile import read_rows, sealed

BLOCKED, SOURCE, OTHER = "203.0.113.10", "198.51.100.1", "192.0.2.99"
POLICY = f"interface near0\ndrop from {SOURCE}\n"


def reboot(weir):
    """The kernel forgets everything, the disk nothing."""
    run(["ip", "-n", weir.pair.near_netns, "link", "set", "near0", "xdp", "off"], check=False)
    if weir.pair.xdp_attached():
        weir.cut()
    for folder in weir.bpffs, f"/run/weir/{weir.name}":
        shutil.rmtree(folder, ignore_errors=True)
    assert not weir.pair.xdp_attached()


@pytest.fixture(name="file")
def policy_file(tmp_path):
    path = tmp_path / "edge.weir"
    path.write_text(POLICY)
    return path


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_interfaces_and_entries_of_commands(pair, weir, mode):
    weir("attach", "near0", "--mode", mode)
    weir("block", BLOCKED)
    weir("block", OTHER, "--volatile")
    reboot(weir)
    done = weir.json("restore")
    assert [(one["name"], one["mode"]) for one in done["interfaces"]] == [("near0", mode)]
    assert pair.free(BLOCKED, OTHER) == [False, True]
    assert "is attached: nothing to restore" in weir("restore").stdout


def test_the_accepted_policy_and_its_interfaces(pair, weir, file):
    weir("apply", file)
    file.unlink()
    weir("block", BLOCKED)
    reboot(weir)
    assert "attached to near0" in weir("restore").stdout
    assert pair.free(SOURCE, BLOCKED, OTHER) == [False, False, True]


def test_the_file_if_it_is_new_or_was_edited(pair, weir, file):
    weir("restore", file)
    assert pair.free(SOURCE) == [False]
    reboot(weir)
    file.write_text(f"{POLICY}drop from {OTHER}\n")
    weir("restore", file)
    assert pair.free(SOURCE, OTHER) == [False, False]


def test_a_bad_file_gives_way_to_the_accepted_policy(pair, weir, file):
    weir("apply", file)
    file.write_text(f"interface near0\ndrop form {OTHER}\n")
    reboot(weir)
    done = weir("restore", file)
    assert "edge.weir:2" in done.stderr and "the last one that was accepted" in done.stderr
    assert pair.free(SOURCE, OTHER) == [False, True]


@pytest.mark.parametrize("text, what", [
    ("", "write 'default pass' if nothing shall be filtered"),
    ("interface near0\n", "write 'default pass' if nothing shall be filtered"),
    (f"interface near0\ndrop from {OTHER}\n", "edge.weir has 1 rule, the active policy 4"),
    (f"interface near0\ndrop from {OTHER}\ndefault pass\n", "edge.weir has 1 rule, the active policy 4"),
])
def test_a_file_of_which_little_is_left_gives_way(pair, weir, file, text, what):
    file.write_text(POLICY + "".join(f"drop from 192.0.2.{last}\n" for last in (1, 2, 3)))
    weir("apply", file)
    file.write_text(text)
    reboot(weir)
    done = weir("restore", file)
    assert what in done.stderr and "the last one that was accepted" in done.stderr
    assert pair.free(SOURCE, OTHER) == [False, True]
    weir("apply", file, check=False)  # as a person does
    assert pair.free(SOURCE, OTHER) == ([True, False] if OTHER in text else [False, True])
    assert weir.json("show")["files"][0]["text"] == (text if OTHER in text else weir.json("show")["files"][0]["text"])


def test_a_text_that_was_rolled_back_stays_so(pair, weir, file):
    weir("apply", file)
    file.write_text(f"{POLICY}drop from {OTHER}\n")
    weir("apply", file)
    weir("rollback")
    reboot(weir)
    assert "has replaced" in weir("restore", file).stderr
    assert pair.free(SOURCE, OTHER) == [False, True]


def test_a_bad_policy_does_not_keep_entries_from_being_restored(pair, weir, file):
    weir("attach", "near0")
    weir("block", BLOCKED)
    reboot(weir)
    file.write_text("nonsense\n")
    assert weir("restore", file, check=False).returncode == 1
    assert pair.free(BLOCKED) == [False]


def test_what_was_detached_or_tried_only_is_not_restored(weir):
    weir("attach", "near0", "--confirm=60s")
    reboot(weir)
    assert "nothing to restore" in weir.fails(1, "restore")
    weir("attach", "near0", "--mode", "generic", "--confirm=60s")
    weir("confirm")
    reboot(weir)
    assert weir.json("restore")["interfaces"][0]["mode"] == "generic"
    weir("detach")
    assert "nothing to restore" in weir.fails(1, "restore")


def test_an_absent_device_is_told(weir):
    weir("attach", "near0")
    reboot(weir)
    (weir.state / "interfaces").write_text("gone0 auto\nnear0 auto\n")  # without a sum, as a person writes it
    assert "no device 'gone0'" in weir("restore").stderr
    weir("detach", "near0")
    (weir.state / "interfaces").write_text("gone0 auto\n")
    assert "none of the interfaces" in weir("restore", check=False).stderr
    assert not weir.bpffs.exists()


def test_a_damaged_list_is_told(weir):
    weir("attach", "near0")
    reboot(weir)
    path = weir.state / "interfaces"
    damaged = path.read_text().replace("near0", "near1")
    path.write_text(damaged)
    done = weir("restore", check=False)
    assert done.returncode == 1 and "interfaces' is damaged" in done.stderr
    kept = weir.state / "interfaces.damaged"
    assert f"interfaces' is damaged: checksum mismatch (it is kept as '{kept}')" in weir("attach", "near0").stderr
    assert kept.read_text() == damaged
    assert read_rows(path, "interface") == [{"name": "near0", "mode": "auto"}]
    weir("detach", "near0")
    weir("forget", "--all")
    assert [path.name for path in weir.state.iterdir()] == ["changes"]  # the record remains


def test_a_list_of_a_newer_version_is_refused(weir):
    """It is neither used nor replaced."""
    weir("attach", "near0")
    reboot(weir)
    path = weir.state / "interfaces"
    for newer in sealed("weir-state 2\n"), sealed('weir-state 1\nport {"name":"near0"}\n'):
        path.write_text(newer)
        done = weir("restore", check=False)
        assert done.returncode == 1 and "interfaces' was written by a newer version" in done.stderr
        assert "was written by a newer version" in weir("attach", "near0").stderr
        assert path.read_text() == newer
        weir("detach", "near0")


def test_a_list_of_an_earlier_version(weir):
    """It is used, and replaced by the next change."""
    path = weir.state / "interfaces"
    weir("attach", "near0")
    reboot(weir)
    old = sealed("near0 generic\n")
    path.write_text(old)
    assert weir.json("restore")["interfaces"][0]["mode"] == "generic"
    assert path.read_text() == old
    weir("detach", "near0")
    path.write_text(sealed("gone0 auto\n"))
    weir("attach", "near0")
    assert read_rows(path, "interface") == [{"name": "gone0", "mode": "auto"}, {"name": "near0", "mode": "auto"}]


def test_a_confirm_needs_the_lock_once(weir):
    """What it notes for restore is written under the same lock: no other command comes in between."""
    weir("attach", "near0", "--confirm=60s")
    run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=flock:error=ENOLCK:when=2+", *weir.argv("confirm")])
    assert read_rows(weir.state / "interfaces", "interface") == [{"name": "near0", "mode": "auto"}]


def test_a_confirm_tells_that_restore_does_not_know(weir):
    weir("attach", "near0", "--confirm=60s")
    weir.state.mkdir(exist_ok=True)
    (weir.state / "interfaces").write_text(sealed("weir-state 2\n"))
    said = weir("confirm").stderr
    assert "was written by a newer version" in said and "'near0' is not attached again at boot" in said
