# SPDX-License-Identifier: GPL-2.0-only
"""scripts/lint analyses each content once: what has passed in one tree has passed in another, a change has not."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "int half(int n);\nint half(int n)\n{\n\treturn n / 2;\n}\n"
BAD = "int same(int n);\nint same(int n)\n{\n\treturn n - n;\n}\n"  # misc-redundant-expression


@pytest.fixture(name="tidy")
def analysis_of_a_tree(tmp_path):
    """tidy("tree", {"ctl/base/a.c": "..."}, "ctl/base/a.c") analyses a file; True if clang-tidy was run for it."""
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin/clang-tidy"
    wrapper.write_text(f'#!/bin/sh\ntouch {tmp_path}/was-run\nexec {shutil.which("clang-tidy")} "$@"\n')
    wrapper.chmod(0o755)

    def tidy(tree, texts, file, status=0):
        folder = tmp_path / tree
        for name, text in {"ctl/base/poison.h": "#pragma once\n", **texts}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts/lint", folder / "scripts")
        shutil.copy(ROOT / ".clang-tidy", folder)
        (tmp_path / "was-run").unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache"),
                       "how": "version and flags"}
        done = subprocess.run([folder / "scripts/lint", "--tidy", file], capture_output=True, text=True, timeout=60,
                              check=False, env=environment)
        assert done.returncode == status, done
        return (tmp_path / "was-run").exists()

    return tidy


def test_a_content_is_analysed_once(tidy):
    text = {"ctl/base/a.c": '#include "ctl/base/a.h"\n' + GOOD, "ctl/base/a.h": "#define ONE 1\n"}
    assert tidy("one", text, "ctl/base/a.c")
    assert not tidy("one", text, "ctl/base/a.c")
    assert not tidy("two", text, "ctl/base/a.c")
    assert tidy("two", {"ctl/base/a.h": "#define ONE 2\n"}, "ctl/base/a.c")
    assert not tidy("one", {"ctl/base/a.h": "#define ONE 2\n"}, "ctl/base/a.c")


def test_what_has_not_passed_is_analysed_again(tidy):
    text = {"ctl/base/a.c": BAD}
    assert tidy("one", text, "ctl/base/a.c", status=1)
    assert tidy("one", text, "ctl/base/a.c", status=1)
    assert tidy("two", text, "ctl/base/a.c", status=1)
