# SPDX-License-Identifier: GPL-2.0-only
"""scripts/completion finds the names of a real instance; tests/scripts/test_completion.py has the rest."""
import shlex
import subprocess

import pytest

from labnet import ROOT, WEIR, run
from policylab import Policies

SERVICE = "service www { vip 198.51.100.80; proto tcp; port 80; mode dr; backend 10.77.0.2 }"


@pytest.fixture(name="offered", scope="module")
def completion_of_bash(tmp_path_factory):
    script = tmp_path_factory.mktemp("completion") / "weir"
    script.write_text(run([ROOT / "scripts/completion", "bash", WEIR]).stdout)

    def offered(on, *words):
        typed = [*on.argv(), *words]
        asked = f'. {script}; COMP_WORDS=({shlex.join(map(str, typed))}); COMP_CWORD={len(typed) - 1}; _weir; echo "${{COMPREPLY[@]}}"'
        return set(subprocess.run(["bash", "-c", asked], check=True, stdout=subprocess.PIPE, text=True).stdout.split())

    return offered


def test_names_of_an_instance(on, offered, tmp_path):
    Policies(on, tmp_path)(SERVICE)
    on("block", "192.0.2.1", "--origin", "fail2ban")
    on("block", "-f", "-", "--sync", "feed.txt", "--origin", "cron", input="192.0.2.2\n")
    revision = on.json("history")["current"]
    assert offered(on, "rollback", "") == offered(on, "show", "") == offered(on, "diff", "--revision", "") == {revision}
    assert offered(on, "list", "--origin", "") == {"fail2ban", "cron"} and offered(on, "list", "--origin", "f") == {"fail2ban"}
    assert offered(on, "unblock", "--sync", "") == {"feed.txt"}
    assert offered(on, "service", "") == {"www"} and offered(on, "drain", "") == {"www", "10.77.0.2"}
    assert offered(on, "backend", "") == {"down", "up", "www", "10.77.0.2"}
    assert on.name in offered(on, "-n", "")
