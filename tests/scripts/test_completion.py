# SPDX-License-Identifier: GPL-2.0-only
"""scripts/completion: what shells offer is what `weir help` lists."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = ROOT / os.environ.get("O", "build") / "weir"


@pytest.fixture(name="written", scope="module", params=["bash", "zsh"])
def written_for(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / request.param
    path.write_bytes(subprocess.run([ROOT / "scripts/completion", request.param, WEIR], check=True, stdout=subprocess.PIPE).stdout)
    return path


def ask(*words):
    return json.loads(subprocess.run([WEIR, "-j", "help", *words], check=True, stdout=subprocess.PIPE).stdout)


def test_the_shell_reads_it(written):
    if not shutil.which(written.name):
        pytest.skip(f"no {written.name}")
    subprocess.run([written.name, "-n", written], check=True)


def test_it_has_all_commands_and_options(written):
    text = written.read_text()
    for command in ask()["commands"]:
        assert command["name"] in text
        for option in ask(command["name"])["options"]:
            assert "--" + option["name"] in text


@pytest.fixture(name="offered", scope="module")
def offered_by_bash(tmp_path_factory):
    """offered(WORD, …): what bash offers for the last word."""
    path = tmp_path_factory.mktemp("bash") / "weir"
    path.write_bytes(subprocess.run([ROOT / "scripts/completion", "bash", WEIR], check=True, stdout=subprocess.PIPE).stdout)

    def offered(*words, cwd="/"):
        script = f'. {path}; COMP_WORDS=(weir "$@"); COMP_CWORD=$#; _weir; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", *words], check=True, stdout=subprocess.PIPE, text=True, cwd=cwd)
        return set(done.stdout.split())

    return offered


def test_bash(offered, tmp_path):
    assert offered("un") == {"unblock", "unallow", "undrain"}
    assert offered("-n", "edge", "rol") == {"rollback"}
    assert "--note" in offered("block", "--no") and "--note" not in offered("detach", "--no")
    assert offered("attach", "--mode", "") == {"auto", "native", "generic"}
    assert "lo" in offered("attach", "") and "lo" in offered("block", "-i", "")
    (tmp_path / "edge.weir").touch()
    assert offered("apply", "ed", cwd=tmp_path) == {"edge.weir"}
    assert offered("help", "conf") == {"confirm"}
