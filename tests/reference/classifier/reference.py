# SPDX-License-Identifier: GPL-2.0-only
"""Asks the reference about frames, and compares its answers with the kernel's."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("O", "build")
REF = BUILD / "tests/reference/classifier"
REFUSED = 3
NOISE = re.compile(r"warning|^ +\d* \|")


def answer(policy, frames, answers):
    """Writes the reference's answer to each line of frames."""
    with open(frames, "rb") as stdin, open(answers, "wb") as stdout:
        subprocess.run([REF / "refmatch", policy], check=True, stdin=stdin, stdout=stdout)


def compare(policy, frames, answers, *words):
    """The finished process of tests/reference/classifier/compare.c; see there for its exit status."""
    return subprocess.run([BUILD / "tests/reference/classifier/compare", policy, frames, answers, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def packets(done):
    """The number of frames of a finished comparison."""
    found = re.search(r"(\d+) packets, (\d+) disagree", done.stdout)
    return int(found[1]) if found else 0


def general(done):
    """How many of them took the general way."""
    found = re.search(r"(\d+) the general way", done.stdout)
    return int(found[1]) if found else 0


def complaints(done):
    """The output of a failed comparison, without the warnings of the policy."""
    return [line for line in done.stdout.splitlines() if NOISE.search(line) is None]
