# SPDX-License-Identifier: GPL-2.0-only
""".ci/run: each step is run, those beside `make test` meanwhile; a failure of any is the failure of all."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = {"make lint", "make test", "make check", "make fuzz-targets", "check-musl", "reproducible", "debian trixie",
         "make vmtest VM_SUITES=bookworm bullseye", "setup build test vm"}
# Writes its name and words when it begins and ends. `make test` waits for a step beside it, as times do for all.
STUB = """#!/bin/bash
echo "begin $(basename "$0") $*" >>log
if [[ $* == test ]]; then
	until grep -q 'end make vmtest' log || ((LATEST < 0)); do sleep 0.05; done
	while kill -0 "$BESIDE"; do sleep 0.05; done 2>/dev/null
	echo "beside has ended" >>log
fi
echo "end $(basename "$0") $*" >>log
[[ "$(basename "$0") $*" != $FAILS* ]] || exit "${STATUS:-1}"
"""


@pytest.fixture(name="ci")
def run_of_stubs(tmp_path):
    """ci(fails="make lint") gives the exit status, what is printed, and which steps began and ended."""

    def ci(fails="nothing", status=1, latest=100):
        for name in ".ci/run", "bin/make", "scripts/setup", "scripts/check-musl", "scripts/reproducible", "tests/vm/debian":
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == ".ci/run":
                shutil.copy(ROOT / name, path)
            else:
                path.write_text(STUB)
            path.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path),
                       "FAILS": fails, "STATUS": str(status), "LATEST": str(latest)}
        # The compilers' links of ccache are not among the stubs: none of them is called.
        done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, timeout=60, check=False, env=environment)
        return done, (tmp_path / "log").read_text().splitlines()

    return ci


def begun(log):
    lines = [line.removeprefix("begin ").replace(f"-j{os.cpu_count()} ", "") for line in log if line.startswith("begin ")]
    return {line.split(" build/")[0].removesuffix(" sh -c").strip() for line in lines}


def test_all_steps_pass(ci):
    done, log = ci()
    assert not done.returncode and begun(log) == STEPS
    assert done.stdout.count(" took ") == len(STEPS) and "FAILED" not in done.stdout
    assert log.index("begin make test") < log.index("end make vmtest VM_SUITES=bookworm bullseye")
    trixie = next(line for line in log if line.startswith("end debian trixie sh -c build/tests/datapath/run --load"))
    assert log.index(trixie) < log.index("beside has ended")


@pytest.mark.parametrize("step", sorted(STEPS - {"make check", "setup build test vm"}))
def test_a_step_fails_and_the_others_are_run(ci, step):
    fails = step.replace("make fuzz-targets", f"make -j{os.cpu_count()} fuzz-targets")
    done, log = ci(fails)
    assert done.returncode == 1 and begun(log) == STEPS and done.stdout.count("FAILED") == 1


def test_steps_that_would_be_late_are_left_out(ci):
    done, log = ci(latest=-1)
    assert not done.returncode and begun(log) == {"setup build test vm", "make check", "make fuzz-targets", "make test"}
    assert done.stdout.count(" was left out: this machine is slow, ") == 5


def test_what_cannot_be_built_is_not_tested(ci):
    done, log = ci(f"make -j{os.cpu_count()} check")
    assert done.returncode == 1 and "make test" not in begun(log)


def test_a_debian_that_cannot_be_had(ci):
    done, log = ci("debian trixie", 77)
    assert not done.returncode and begun(log) == STEPS
