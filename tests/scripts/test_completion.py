# SPDX-License-Identifier: GPL-2.0-only
"""scripts/completion: what shells offer, in a terminal, is what `weir help` lists."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = ROOT / os.environ.get("O", "build") / "weir"
# Each shell writes what it offers, and then "end", to a file.
BASH = """\
. {completion}
_offer() {{ _weir; printf '%s\\n' "${{COMPREPLY[@]}}" end >>{offered}; }}
complete -o filenames -F _offer weir
"""
ZSH = """\
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -D
LISTMAX=10000
compadd() {{ # those with -O, -A and -D only ask
	local -a found
	[[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]] || {{ builtin compadd -A found "$@"; print -rl -- $found >>{offered}; }}
	builtin compadd "$@"
}}
offer() {{ zle expand-or-complete; print end >>{offered}; BUFFER= }}
zle -N offer
bindkey '^I' offer
"""


class Shell:
    def __init__(self, name, folder):
        self.name, self.folder, self.offered = name, folder, folder / "offered"
        completion = folder / "_weir"
        completion.write_bytes(subprocess.run([ROOT / "scripts/completion", name, WEIR], check=True, stdout=subprocess.PIPE).stdout)
        rc = folder / (".zshrc" if name == "zsh" else "rc")
        rc.write_text((ZSH if name == "zsh" else BASH).format(completion=completion, folder=folder, offered=self.offered))
        argv = ["zsh", "-d", "-i"] if name == "zsh" else ["bash", "--noprofile", "--rcfile", str(rc), "-i"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "ZDOTDIR": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execvpe(name, argv, environment)
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def __call__(self, typed):
        """What it offers after TAB."""
        self.offered.write_text("")
        os.write(self.terminal, f"{typed}\t".encode())
        until = time.monotonic() + 20
        while not (text := self.offered.read_text()).endswith("end\n"):
            assert time.monotonic() < until, (self.name, typed, text)
            time.sleep(0.01)
        if self.name == "bash":
            os.write(self.terminal, b"\x15")  # the line is removed
        return {word.rstrip("=") for word in text.split()[:-1]}

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.fixture(name="offered", scope="module", params=["bash", "zsh"])
def shell_of(request, tmp_path_factory):
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param}")
    shell = Shell(request.param, tmp_path_factory.mktemp(request.param))
    yield shell
    shell.end()


def ask(*words):
    return json.loads(subprocess.run([WEIR, "-j", "help", *words], check=True, stdout=subprocess.PIPE).stdout)


NAMES = """#!/bin/sh
case "$*" in
'-n edge metrics')
	echo '# TYPE weir_origin_entries gauge'
	echo 'weir_origin_entries{origin="fail2ban",verb="block"} 2'
	echo 'weir_origin_entries{origin="$(touch evaluated)",verb="block"} 2'
	echo 'weir_list_entries{list="feed.txt",origin="cron",verb="block"} 5'
	echo 'weir_service_backends{service="www",state="up"} 2'
	echo 'weir_backend_packets_total{service="www",backend="10.0.0.1"} 7' ;;
'-N there -n edge -j history')
	echo '{"instance": "edge", "current": "1014", "revisions": [{"revision": "1014", "at_s": 1},{"revision":"1013"}]}' ;;
esac
"""


def long(options):
    return {"--" + option["name"] for option in options}


def test_commands(offered):
    assert offered("weir ") == {command["name"] for command in ask()["commands"]} | {"help"}
    assert offered("weir un") == {"unblock", "unallow", "undrain"}
    assert offered("weir -n edge rol") == {"rollback"}
    assert offered("weir help conf") == {"confirm"}


def test_options_of_each_command(offered):
    everywhere = long(ask()["global_options"])
    for command in ask()["commands"]:
        own = long(ask(command["name"])["options"])
        assert {word for word in offered(f"weir {command['name']} --") if word.startswith("--")} == own | everywhere, command
    assert offered("weir block --no") >= {"--note"} and "--note" not in offered("weir detach --no")


def test_arguments(offered):
    assert offered("weir attach --mode=") == {"auto", "native", "generic"} and offered("weir attach --mode=na") == {"native"}
    assert offered("weir --instance=edge rol") == {"rollback"}
    assert offered("weir attach --mode ") == {"auto", "native", "generic"}
    assert "lo" in offered("weir attach ") and "lo" in offered("weir block -i ")
    (offered.folder / "edge.weir").touch()
    assert offered("weir apply ed") == {"edge.weir"}


def test_names_that_the_instance_knows(offered):
    """The program prints them; what a shell would evaluate is left out. tests/lab/test_completion_names.py asks a real one."""
    weir = offered.folder / "weir"
    weir.write_text(NAMES)
    weir.chmod(0o755)
    for typed, names in (
            ("list -n edge --origin ", {"fail2ban"}), ("-n edge block --origin=", {"fail2ban"}), ("--instance=edge unblock --sync ", {"feed.txt"}),
            ("-n edge drain ", {"www", "10.0.0.1"}), ("-n edge service w", {"www"}), ("-n edge watch dr", {"drops"}), ("-n edge backend ", {"down", "up", "www", "10.0.0.1"}),
            ("-N there -n edge rollback ", {"1014", "1013"}), ("-N there -n edge apply --if-revision ", {"1014", "1013"}),
            ("rollback ", set())):
        assert offered(f"./weir {typed}") == names, typed
    assert not (offered.folder / "evaluated").exists()
    (offered.folder / "edge.weir").touch()
    assert offered("weir apply x --as ed") == {"edge.weir"}
    assert offered("weir attach -n edge --mode na") == {"native"}  # a global option may follow the command
