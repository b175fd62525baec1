# SPDX-License-Identifier: GPL-2.0-only
"""What the build promises: protections of the program, and what make install puts where."""

import functools
import json
import os
import re
import shlex
import stat

import pytest

from labnet import ROOT, WEIR, run


def readelf(*options):
    return run(["readelf", "-W", *options, WEIR]).stdout


def test_the_program_is_position_independent_with_full_relro():
    assert "DYN (Position-Independent Executable file)" in readelf("-h")
    assert "GNU_RELRO" in readelf("-l")
    dynamic = readelf("-d")
    assert "BIND_NOW" in dynamic and "Flags: NOW PIE" in dynamic
    stack = next(line for line in readelf("-l").splitlines() if "GNU_STACK" in line)
    assert " RWE " not in stack


def test_the_program_checks_its_stack_and_its_copies():
    symbols = readelf("--dyn-syms")
    for wanted in "__stack_chk_fail", "__snprintf_chk", "__memcpy_chk":
        assert wanted in symbols, wanted


def test_indirect_calls_land_on_marked_places():
    if os.uname().machine != "x86_64":
        assert "endbr64" not in run(["objdump", "-d", "--disassemble=main", WEIR]).stdout
    else:
        assert "endbr64" in run(["objdump", "-d", "--disassemble=main", WEIR]).stdout


LPM = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct key { __u32 prefixlen, kind; __u8 addr[16]; %s };
struct { %s; __uint(max_entries, 1); } map SEC(".maps");
"""


@functools.cache
def bpf_compiler():
    """How the build compiles a program of xdp/, up to the files."""
    lines = run(["make", "-nB", "-C", ROOT, "V=1", "build/xdp/decap.bpf.o"], timeout=120).stdout.splitlines()
    command = shlex.split(next(line for line in lines if line.endswith(" xdp/decap.bpf.c")))
    return command[:command.index("-MMD")]


@pytest.mark.parametrize("pad,map_of,said", [
    ("", "LPM_MAP(struct key, __u64)", "pad the key"),
    ("", "__uint(type, BPF_MAP_TYPE_LPM_TRIE); __type(key, struct key); __type(value, __u64)", "poisoned"),
    ("__u32 pad;", "LPM_MAP(struct key, __u64)", None),
    ("", "LPM_MAP(struct key, __u32)", None),
])
def test_values_of_maps_are_aligned(tmp_path, pad, map_of, said):
    """A word that is not aligned and changed atomically would be a panic of an arm64 kernel."""
    source = tmp_path / "lpm.bpf.c"
    source.write_text(LPM % (pad, map_of))
    done = run([*bpf_compiler(), "-fsyntax-only", source], cwd=ROOT, check=False)
    assert (done.returncode == 0) == (said is None) and (said or "") in done.stderr, done.stderr


def test_a_command_loads_few_libraries():
    """Each takes time of every start; libcurl and those below it are loaded where they are used."""
    libraries = [line.split()[0] for line in run(["ldd", WEIR]).stdout.splitlines()]
    assert not [name for name in libraries if name.startswith(("libcurl", "libssl", "libcrypto", "libgnutls", "libldap"))]
    assert len(libraries) <= 14, libraries


def test_install_strips_the_program(tmp_path):
    run(["make", "-s", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr"], timeout=120)
    program = tmp_path / "usr/sbin/weir"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert ".symtab" not in run(["readelf", "-WS", program]).stdout
    assert ".symtab" in readelf("-S")  # the program in the build folder keeps its symbols
    assert run([program, "-V"]).stdout.startswith("weir ")
    assert (tmp_path / "usr/share/man/man8/weir.8").exists()


def test_places_for_tracers(tmp_path):
    """The program has those that docs/tracing.md lists, with as many arguments; also after `make install`."""
    page = (ROOT / "docs" / "tracing.md").read_text()
    listed = {name: 0 if "(none)" in words else len(re.sub(r"\([^)]*\)", "", words).split(","))
              for name, words in re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)}
    run(["make", "-s", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr"], timeout=120)
    for program in WEIR, tmp_path / "usr/sbin/weir":
        notes = run(["readelf", "-nW", program]).stdout
        found = re.findall(r"Provider: weir\s+Name: (\w+)\s+Location: .*\n\s+Arguments: ?(.*)", notes)
        assert {name: len(words.split()) for name, words in found} == listed


def test_compile_commands_name_every_file():
    commands = run(["make", "-nB", "-C", ROOT, "V=1", "check"], timeout=120).stdout
    made = run([ROOT / "scripts/compile-commands"], input=commands, cwd=ROOT)
    compiled = {entry["file"]: entry["arguments"] for entry in json.loads(made.stdout)}
    folders = ("ctl", "xdp", "tests/unit")
    wanted = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.c")}
    assert wanted and not wanted - compiled.keys()
    assert "bpf" in compiled["xdp/policy.bpf.c"] and "-Wconversion" in compiled["ctl/main.c"]


def test_another_machine_has_its_compiler_and_libraries():
    def asked(machine):
        return run(["make", "-nB", "-C", ROOT, "V=1", "O=build/there", f"ARCH={machine}", "SYSROOT=/there",
                    "build/there/ctl/main.o", "build/there/xdp/policy.bpf.o"], timeout=120, check=False)

    lines = asked("arm64").stdout.splitlines()
    compiled = next(line for line in lines if line.endswith(" ctl/main.c"))
    assert compiled.startswith("aarch64-linux-gnu-gcc --sysroot=/there ") and "-fcf-protection" not in compiled
    packets = next(line for line in lines if line.endswith(" xdp/policy.bpf.c"))
    assert "/there/usr/include/aarch64-linux-gnu" in packets and "__TARGET_ARCH_arm64" in packets
    refused = asked("riscv64")
    assert refused.returncode == 2 and "ARCH=riscv64" in refused.stderr
