# SPDX-License-Identifier: GPL-2.0-only
"""The scripts that check the tree: what breaks a rule is reported where it is, and what keeps it is not."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name="check")
def check_of_a_tree(tmp_path):
    """check("structs", {"ctl/base/a.c": "..."}) gives the lines that the script prints of such a tree."""

    def check(name, tree, *options):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        done = subprocess.run([ROOT / f"scripts/check-{name}", *options, tmp_path], capture_output=True, text=True,
                              timeout=60, check=False)
        lines = done.stdout.splitlines()
        assert not done.stderr and done.returncode == bool(lines), done
        return lines

    return check


LICENCE = "SPDX-License-Identifier: GPL-2.0-only"


@pytest.fixture(name="listed")
def files_of_a_tree(tmp_path):
    """listed({"ctl/base/a.c": "..."}, ARGUMENT...) is what scripts/files does in a repository of such files."""

    def listed(tree, *arguments):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        (tmp_path / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/files", tmp_path / "scripts")
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return subprocess.run([tmp_path / "scripts/files", *arguments], capture_output=True, text=True,
                              timeout=60, check=False)

    return listed


def test_an_include_that_its_room_may_not_have(check):
    tree = {
        "common/a.h": "#include <stdio.h>\n",
        "xdp/b.bpf.h": '#include "ctl/base/num.h"\n',
        "ctl/base/c.c": '#include "ctl/base/c.h"\n#include "ctl/net/link.h"\nint n = strtol(s, NULL, 0);\n',
        "ctl/agent/e.c": "e = loop_event(b, 1, 0, f, NULL);\ne = event_new(b, 1, 0, f, NULL);\nevent_free(e);\n",
        "ctl/net/loop.c": "event_assign(e, b, 1, 0, f, NULL);\n",
        "ctl/control/entries/store.c": '#include "ctl/control/entries/store_parts.h"\n#include "ctl/control/apply.h"\n',
        "ctl/control/f.c": '#include "ctl/control/entries/store.h"\n#include "ctl/control/entries/store_parts.h"\n',
        "ctl/policy/d.c": '#include <libmnl/libmnl.h>\n#include "../base/c.h"\n',
    }
    assert [line.split(" ", 1)[0] for line in check("layers", tree)] == [
        "common/a.h:1:", "xdp/b.bpf.h:1:", "ctl/agent/e.c:2:", "ctl/agent/e.c:3:", "ctl/base/c.c:2:", "ctl/base/c.c:3:",
        "ctl/control/entries/store.c:2:", "ctl/control/f.c:2:", "ctl/policy/d.c:1:", "ctl/policy/d.c:2:"]


def test_a_long_function_and_a_file_without_licence(check):
    def function(lines):
        return "static void f(void)\n{\n" + "\tg();\n" * (lines - 3) + "}\n"

    tree = {"ctl/base/a.c": f"// {LICENCE}\n{function(100)}", "ctl/base/b.c": f"// {LICENCE}\n{function(101)}",
            "tests/run": "#!/bin/sh\n"}
    assert check("functions", tree) == [
        "ctl/base/b.c:2: f has 101 lines, more than 100", f"tests/run:1: no '{LICENCE}'"]


def test_a_construction_that_is_more_frequent_than_its_limit(check):
    def comments(words, n):
        return {"ctl/base/a.c": f"// {LICENCE}\n" + f"// {words}\nint a;\n" * n}

    assert check("words", comments("Keeps the addresses of before.", 10)) == []
    assert check("words", comments("Keeps the addresses of before.", 11)) == [
        "'of before': 11 times in 55 words, more than 10 in 100,000: CONTRIBUTING.md, English"]


def test_the_rate_of_each_construction(check):
    tree = {
        "ctl/base/a.c": f"// {LICENCE}\n// Of processors, and those\n// of cards: the sum of it.\nint a; // of four bytes, the lowest ones first\n"
                        '// The room for a, b, c and no more.\nchar *s = "what is left. What differs, alone\\n";\n',
        "docs/a.md": "It comes anew, as it came,\nand tells of it.\n\nWho is that?\n",
    }
    found = {line.split("  ", 2)[-1].strip(): int(line.split()[0]) for line in check("words", tree, "--rates")}
    assert {name.split("  ")[-1]: n for name, n in found.items()} == {
        "that of, those of": 1, "of it, of them": 2, "comes, came": 2, "tells, told": 1, "alone": 1, "of before": 0,
        "anew": 1, "behind": 0, "clause as subject": 1, "comment that begins with 'of'": 2,
        "comment without a verb": 3}
    assert check("words", tree, "--find=clause as subject") == [
        "ctl/base/a.c:6: what is left. What differs, alone "]


def test_a_comment_that_is_too_wide(check):
    word = "word " * 19
    tree = {"ctl/base/a.c": f"// {LICENCE}\n// {word[:97]}\n\t// {word}\n//  one   {word}\nint a; /* {word.strip()} */\n"}
    assert check("functions", tree) == [
        "ctl/base/a.c:3: a comment has 106 columns, more than 100",
        "ctl/base/a.c:5: a comment has 107 columns, more than 100"]


def test_a_struct_with_two_definitions(check):
    tree = {
        "ctl/base/a.h": "struct range;\nstruct range { int first; };\n",
        "ctl/net/b.c": "/* struct range { */\nstatic struct range *all;\n\nstruct range\n{\n\tint last;\n};\n",
    }
    assert check("structs", tree) == [
        "ctl/net/b.c:4: 'struct range' is also defined in ctl/base/a.h:2"]


def test_a_struct_of_the_datapath_and_an_enum_of_control(check):
    tree = {"ctl/base/a.c": "enum stage { ONE };\n", "xdp/b.bpf.h": "enum step { ONE };\nstruct stage { int n; };\n"}
    assert check("structs", tree) == ["ctl/base/a.c:1: 'enum stage' is also defined in xdp/b.bpf.h:2"]


def test_one_definition_each(check):
    assert not check("structs", {"ctl/base/a.h": "struct a { int n; };\nstruct b { struct a a; };\n"})


def test_a_header_that_relies_on_another(check):
    tree = {
        "ctl/base/a.h": "#pragma once\n#include <stddef.h>\n",
        "ctl/base/b.h": "#pragma once\nsize_t length(void);\n",
        "xdp/c.bpf.h": "#pragma once\n#include <bpf/bpf_helpers.h>\n",
    }
    found = check("headers", tree)
    assert len(found) == 3
    assert found[0].startswith("xdp/: its headers do not compile together: ")
    assert found[1].startswith("xdp/c.bpf.h:1: does not compile alone: ")
    assert found[2].startswith("ctl/base/b.h:1: does not compile alone: ")


def test_two_headers_that_exclude_each_other(check):
    tree = {
        "ctl/base/a.h": "#pragma once\nint length(void);\n",
        "ctl/base/b.h": "#pragma once\nlong length(void);\n",
        "ctl/net/c.h": "#pragma once\nvoid length(void);\n",
    }
    found = check("headers", tree)
    assert len(found) == 1
    assert found[0].startswith("ctl/base/: its headers do not compile together: ")


def test_headers_that_include_what_they_need(check):
    tree = {
        "common/a.h": "#pragma once\n#include <linux/types.h>\nstruct a { __u32 n; };\n",
        "xdp/b.bpf.h": '#pragma once\n#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n#include "common/a.h"\n',
        "ctl/base/c.h": "#pragma once\n#include <stddef.h>\nsize_t length(void);\n",
    }
    assert not check("headers", tree)


def test_a_ladder(check):
    text = """int f(void)
{
	int code = a();

	if (!code)
		code = b();
	if (!code && c())
		code = d();
	for (i = 0; i < n && !code; i++)
		code = e(i);
	while (!code)
		code = next();
	if (!code)
		return g();
	return code;
}
"""
    found = check("returns", {"ctl/base/a.c": text})
    assert [line.split(":")[1] for line in found] == ["5", "7", "9", "11", "13"]
    assert found[0] == "ctl/base/a.c:5: 'if (!code': return early instead, 'if (code) return code;'"


def test_results_of_another_name(check):
    text = "int f(int r)\n{\n\tint rc = a();\n\tint n = 0, ret;\n\n\treturn rc;\n}\n\nstruct w {\n\tint result;\n};\n"
    assert check("returns", {"ctl/base/a.c": text}) == [
        f"ctl/base/a.c:{line}: a result is named 'code', not '{name}'"
        for line, name in ((3, "rc"), (4, "ret"), (10, "result"))]


def test_folders_that_are_left_out(check):
    tree = {"ctl/base/a.c": "\tint rc; // by hand\n", "ctl/cmd/b.c": "\tint rc; // by hand\n"}
    assert len(check("returns", tree)) == len(check("words", tree)) == 2
    for name in "returns", "words":
        found = check(name, tree, "--except=ctl/cmd/,ctl/net/")
        assert len(found) == 1 and found[0].startswith("ctl/base/a.c:1: ")


def test_early_returns(check):
    text = """/* if (!code) in a comment */
int f(int range, int *ret)
{
	int code = a("if (!code)", rc, ret), rcount;

	if (code)
		return code;
	code = b();
	if (!code)
		return 0;
	*ret = !code;
	return c();
}
"""
    assert not check("returns", {"ctl/base/a.c": text, "xdp/b.c": "int f(void)\n{\n\tint rc = 0;\n}\n"})


def test_the_agent_decides_by_no_message(check):
    text = """// strstr(said, "not changed")
bool f(const char *said)
{
	if (strstr(said, ": 0 added"))
		return false;
	log_info("a line");
	return strncmp(said, "unchanged: ",
		       11) || !strcmp(key, "file") || strstr(url, "://") || g(strlen(said), "a line") ||
	       strstr(page, "\\r\\nContent-Type: text/html\\r\\n");
}
"""
    assert check("decisions", {"ctl/agent/a.c": text, "ctl/cmd/b.c": text}) == [
        f"ctl/agent/a.c:{line}: {what}: decide by exit status and document, not by a message"
        for line, what in ((4, 'strstr() with ": 0 added"'), (7, 'strncmp() with "unchanged: "'))]


def test_files_without_a_sentence_about_their_purpose(listed):
    tree = {
        "ctl/base/a.c": f"// {LICENCE}\n#include <stddef.h>\n\n// Not about the file.\nint a;\n",
        "ctl/base/b.c": f"// {LICENCE}\n// About the file.\nint b;\n",
        "ctl/base/c.c": f"// {LICENCE}\n#include \"ctl/base/c.h\"\n",
        "ctl/base/c.h": f"// {LICENCE}\n// About the module.\n",
        "tests/run": f"#!/bin/sh\n# {LICENCE}\n\nset -e\n",
        "tests/data.txt": "data\n",
    }
    done = listed(tree, "--check")
    assert done.returncode == 1 and done.stdout.splitlines() == [
        "ctl/base/a.c:1: no sentence about its purpose", "tests/run:1: no sentence about its purpose"]


def test_files_in_reading_order(listed):
    tree = {
        "ctl/net/a.c": f'// {LICENCE}\n// Needs b. More.\n#include "ctl/net/b.h"\n',
        "ctl/net/b.c": f"// {LICENCE}\n// Not shown.\n",
        "ctl/net/b.h": f"/* {LICENCE} */\n/* The module\n * b. */\n",
        "common/z.h": f"/* {LICENCE} */\n/* Is it first? Yes. */\n",
        "policies/p.weir": "# p.weir: an example.\n",
    }
    done = listed(tree)
    assert not done.returncode
    assert [line.split(maxsplit=2) for line in done.stdout.splitlines() if line][:7] == [
        ["common/"], ["z.h", "Is", "it first?"], ["ctl/net/"], ["b.h,", "b.c", "The module b."],
        ["a.c", "Needs", "b."], ["policies/"], ["p.weir", "an", "example."]]


def test_words_of_another_language(check):
    tree = {
        "README.md": "What stands here is\nnone of it.\n",
        "docs/weir.8.scd": "The policy goes on.\nIt is in effect.\n",
        "ctl/base/a.c": '/* Set by\n * hand. */\nconst char *a = "nobody", *b = "one word "\n\t"too many";\n',
        "xdp/a.bpf.h": "// The bytes behind the header.\n",
        "policies/a.weir": "# a.weir: blocked for ever.\n",
        "scripts/a": "echo behind that\n",
        "tests/lab/test_a.py": '"""Says so."""\n',
    }
    found = [line.rsplit(": ", 1)[0] for line in check("words", tree)]
    assert found == [
        "README.md:1: 'stands'", "README.md:1: 'is none'", "docs/weir.8.scd:1: 'goes on'",
        "docs/weir.8.scd:2: 'in effect'", "xdp/a.bpf.h:1: 'behind'",
        "ctl/base/a.c:1: 'by hand'", "ctl/base/a.c:3: 'nobody'", "ctl/base/a.c:3: 'one word too many'",
        "policies/a.weir:1: 'for ever'", "scripts/a:1: 'behind'", "tests/lab/test_a.py:1: 'Says so'"]


def test_right_uses_of_these_words(check):
    tree = {
        "README.md": "Hosts behind a router, or behind\nlibxdp's dispatcher. It leaves nothing behind. x stands for y.\n",
        "docs/a.md": "Packets have gone to eth0; it goes on to the next. None is understood.\n",
        "tests/a.txt": "behind\n",
    }
    assert not check("words", tree)


def test_former_names(check):
    text = "struct twin *twin_of(void);\nint n = WEIR_SLOT_ACTIVE; // fleeting\nCLEANUP_WORLD a;\nint hands;\n"
    tree = {"ctl/base/a.c": text, "tests/a.c": text}
    assert [line.rsplit(": ", 1)[0] for line in check("words", tree)] == [
        "ctl/base/a.c:1: 'twin'", "ctl/base/a.c:1: 'twin_of'", "ctl/base/a.c:2: 'WEIR_SLOT_ACTIVE'",
        "ctl/base/a.c:3: 'CLEANUP_WORLD'"]


def test_one_rules(check):
    text = 'f("%zu rules", n);\nf("%" PRIu64 " pins", n);\nf("at most %d rules, more than %u sets", MAX, n);\nf("%u bytes", n);\nf("%u has", n);\n'
    assert check("words", {"ctl/base/a.c": text}) == [
        "ctl/base/a.c:1: 'rules': num_plural(n, one, many)", "ctl/base/a.c:2: 'pins': num_plural(n, one, many)"]


def test_names_in_documents(check):
    tree = {
        "Makefile": "all: x\ncheck test: all\nO := build\n",
        "README.md": "[one](docs/a.md) [two](docs/b.md) `make test`\n\n    sudo make tests\n    scripts/gone --option\n",
        "docs/a.md": "`base/num` `base/nun` `num.h` `nun.h` `num_parse()` `num_prase()`\n`MAX_BYTES` `MAX_BITES` "
                     "[up](../README.md) [off](../X.md)\n`ctl/base/` `ctl/bose/` `bpf_loop` `ctl/ROOM/x`\n",
        "docs/weir.8.scd": "docs/a.md, docs/c.md and https://example.net/docs/c.md\n",
        "ctl/base/num.h": "int num_parse(void);\n#define MAX_BYTES 1\n",
    }
    assert check("docs", tree) == [
        "README.md:1: no file 'docs/b.md'", "README.md:3: no target 'tests' of make", "README.md:4: no file 'scripts/gone'",
        "docs/a.md:1: no module 'base/nun'", "docs/a.md:1: no file 'nun.h'",
        "docs/a.md:1: no name in the code 'num_prase()'", "docs/a.md:2: no file '../X.md'",
        "docs/a.md:2: no name in the code 'MAX_BITES'", "docs/a.md:3: no file 'ctl/bose/'",
        "docs/weir.8.scd:1: no file 'docs/c.md'"]
