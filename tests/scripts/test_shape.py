# SPDX-License-Identifier: GPL-2.0-only
"""scripts/shape: each count of its table finds what it is about, and a count that has reached its aim is held."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import counts  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(name="shape")
def shape_of_a_tree(tmp_path):
    """shape({"ctl/base/a.c": "..."}, ARGUMENT...) is what the script prints of such a tree."""

    def shape(tree, *arguments):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return subprocess.run([ROOT / "scripts/shape", tmp_path, *arguments], capture_output=True, text=True, timeout=60,
                              check=True).stdout

    return shape


def test_the_table_has_each_count_and_its_aim(shape):
    lines = shape({"ctl/base/a.h": "int a;\n"}, "--table").splitlines()
    assert lines[0].split() == ["today", "aim"] and len(lines) == 1 + len(counts.COUNTS)
    assert lines[1].split() == ["files", "of", "the", "product", "1", "570"]


def test_files_lines_and_headers(shape):
    tree = {"ctl/base/a.h": "int a;\n", "ctl/base/a.c": "int a;\nint b;\n", "xdp/b.bpf.h": "int c;\n", "tests/unit/c.h": "int d;\n"}
    assert shape(tree, "--list", "files of the product").split() == ["xdp/b.bpf.h", "ctl/base/a.c", "ctl/base/a.h"]
    assert len(shape(tree, "--list", "lines of the product").split()) == 4
    assert shape(tree, "--list", "headers of ctl").split() == ["ctl/base/a.h"]


def test_files_that_are_too_long(shape):
    tree = {"ctl/base/a.c": "int a;\n" * 700, "ctl/base/b.c": "int a;\n" * 701, "tests/lab/test_c.py": "pass\n" * 701,
            "tests/golden/long.txt": "a\n" * 701}
    assert shape(tree, "--list", "files over").split() == ["ctl/base/b.c", "tests/lab/test_c.py"]


def test_files_of_two_subjects(shape):
    begin = "// SPDX-License-Identifier: GPL-2.0-only\n// "
    tree = {"ctl/base/a.c": f"{begin}Reads lists, and reports their errors.\n",
            "ctl/base/b.c": f"{begin}Reports errors of lists, and of lines.\n",
            "ctl/base/c.c": f"{begin}Reads names, addresses, and lines.\n"}
    assert shape(tree, "--list", "files of two subjects") == "ctl/base/a.c: Reads lists, and reports their errors.\n"


def test_circles(shape):
    tree = {"ctl/net/c.h": '#include "ctl/net/d.h"\n', "ctl/net/d.h": "struct d;\n", "ctl/net/d.c": '#include "ctl/net/c.h"\n',
            "ctl/net/e.c": '#include "ctl/net/c.h"\n'}
    assert shape(tree, "--list", "circles") == "ctl/net/c ctl/net/d\n"


def test_shapes_of_an_entry(shape):
    tree = {"ctl/base/a.h": "struct a {\n\tstruct prefix prefix;\n\tuint8_t kind;\n};\n"
                            "struct b {\n\tstruct prefix *at;\n\tuint8_t kind;\n};\n"
                            "struct c {\n\tstruct prefix prefix;\n\tuint64_t for_ms;\n};\n"
                            "struct d {\n\tstruct prefix prefix; // uint8_t kind;\n};\n"}
    assert shape(tree, "--list", "shapes").splitlines() == ["ctl/base/a.h: a", "ctl/base/a.h: c"]


def test_formats_on_disk(shape):
    tree = {"ctl/control/a.c": "x = sum_open(text, &len);\n", "ctl/control/b.c": "p = mmap(NULL, n, 1, 1, fd, 0);\n",
            "ctl/control/c.c": "c = file_replace(path, text, len, 0600, err);\n",
            "ctl/control/d.c": '#include "ctl/base/json.h"\nc = file_replace(path, text, len, 0600, err);\n',
            "ctl/control/e.c": "// sum_open() is not called here\n", "ctl/datapath/f.c": "p = mmap(NULL, n, 1, 1, fd, 0);\n"}
    assert shape(tree, "--list", "formats").split() == ["ctl/control/a.c", "ctl/control/b.c", "ctl/control/c.c"]


def test_mechanisms_with_a_back_off(shape):
    tree = {"ctl/agent/a.c": "s = FIRST_S << doublings;\n", "ctl/agent/b.c": "s = first << (t->failures < 8 ? t->failures : 8);\n",
            "ctl/agent/c.c": "word = bits << 8;\nmask = 1u << times_of(a);\n"}
    assert shape(tree, "--list", "mechanisms").split() == ["ctl/agent/a.c", "ctl/agent/b.c"]


def test_what_a_field_and_a_mode_touch(shape):
    tree = {"common/a.h": "enum { FIELD_VLAN };\n", "xdp/b.bpf.h": "#define ALL(X) X(VLAN) X(IFACE)\n",
            "xdp/c.bpf.h": "struct packet {\n\t__u32 to;\n\t__u16 vlan;\n};\nstruct key {\n\t__u16 n;\n};\n",
            "xdp/d.bpf.h": "f(pkt->vlan);\n", "xdp/short-a.bpf.h": "p.vlan = read16(ip);\n", "xdp/short-b.bpf.h": "BOUND(v, ROOM_VLAN)\n",
            "ctl/control/e.c": "x = use[FIELD_VLAN];\n", "ctl/net/f.c": "p->vlan = 3;\n",
            "ctl/base/g.c": 'char *a = "gue";\n', "ctl/base/h.c": "argue(); // gue\n", "ctl/base/i.c": "MODE_GUE\n"}
    assert shape(tree, "--list", "files that a field").split() == ["common/a.h", "xdp/b.bpf.h", "xdp/c.bpf.h", "xdp/d.bpf.h",
                                                                "xdp/short-a.bpf.h", "xdp/short-b.bpf.h"]
    assert shape(tree, "--list", "files that a mode").split() == ["ctl/base/g.c", "ctl/base/i.c"]


def test_a_count_that_has_reached_its_aim_is_held():
    def problems(n, held):
        return list(counts.problems(None, [counts.Count("things", 3, lambda tree: [""] * n, held)]))

    assert not problems(4, False) and not problems(3, True) and not problems(2, True)
    assert problems(4, True) == ["things: 4, more than 3 again (scripts/shape --list 'things')"]
    assert problems(3, False) == ["things: 3, the aim of 3 is reached: mark it 'held' in scripts/counts.py"]


def test_the_details_of_a_tree(shape):
    tree = {
        "ctl/base/a.h": "struct a;\nint a_get(struct a *a);\n",
        "ctl/base/a.c": '#include "ctl/base/a.h"\n#include "ctl/base/b.h"\nint a_get(struct a *a)\n{\n\treturn b_get(a);\n}\n',
        "ctl/base/b.h": "int b_get(struct a *a);\n",
        "ctl/base/b.c": '#include "ctl/base/a.h"\nint b_get(struct a *a)\n{\n\treturn a_get(a); // MATCH_TTL\n}\n',
        "ctl/net/c.h": '#include "ctl/net/d.h"\nstruct c { int ttl_min; };\n',
        "ctl/net/d.h": "struct d;\nint d_get(void);\n",
        "ctl/net/d.c": '#include "ctl/net/c.h"\nstatic int b_get(int n)\n{\n\treturn n;\n}\nint d_get(void)\n{\n\treturn b_get(MATCH_TTL);\n}\n',
        "xdp/e.bpf.h": "int e(int r)\n{\n\treturn r == REASON_A || r == REASON_B || r >= REASON_C;\n}\n"
                       "int f(int r)\n{\n\treturn r == REASON_A || r != REASON_B || g(REASON_C);\n}\n",
        "ctl/table/f.h": "struct row;\n",
        "ctl/cmd/g.h": "struct iface_row; // a row, not an arrow\n",
        "tests/cases.txt": "ttl 1\n",
    }
    printed = shape(tree, "--words", "ttl")
    assert "\n6 functions, median " in printed
    assert "\n'row' outside the bit matrix: 2\n" in printed
    assert "module circles by calls: 1\n  2: ctl/base/a ctl/base/b\n" in printed
    assert "module circles by calls or includes: 2\n  2: ctl/base/a ctl/base/b\n  2: ctl/net/c ctl/net/d\n" in printed
    assert "'ttl' touches 2 code files; 1 of tests\n  ctl/net/c.h\n  ctl/net/d.c\nfunctions" in printed
    assert printed.endswith("functions that tell three or more reasons apart: 1\n  xdp/e.bpf.h: e\n")
