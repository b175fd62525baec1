# SPDX-License-Identifier: GPL-2.0-only
"""The bench: the peak of a command is its own, packets are restored, and what was measured is never lost."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from labnet import BUILD, ROOT, run

PROGRAM = r"""
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/bench.h"
#include "tests/bench/tools.h"

void bench_fail(int code, const char *fmt, ...) { (void)fmt; exit(code ? code : 1); }
uint64_t bench_now_ns(void) { return 0; }

/* Blocks too small for a mapping of their own; the last one stays and keeps the heap from shrinking by itself. */
int main(int argc, char **argv)
{
	enum { N = 2048, BYTES = 65536 };
	static char *blocks[N];
	struct tool_cost cost;
	int keep = argc > 1 && !strcmp(argv[1], "keep");

	for (int i = 0; i < N; i++)
		memset(blocks[i] = malloc(BYTES), 1, BYTES);
	for (int i = 0; !keep && i < N - 1; i++)
		free(blocks[i]);
	if (tool_run((const char *const[]){"/usr/bin/python3", "-c", "", NULL}, &cost))
		return 1;
	printf("%llu\n", (unsigned long long)cost.peak_kb);
	return blocks[N - 1][0] != 1;
}
"""


@pytest.fixture(name="peak_kb", scope="module")
def peak_after_a_large_heap(tmp_path_factory):
    """peak_kb(WORD) of an interpreter, run by a program that has had 128 MB; "keep": and still has."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "peak.c").write_text(PROGRAM)
    run(["gcc", "-D_GNU_SOURCE", f"-I{ROOT}", "-o", folder / "peak", folder / "peak.c", BUILD / "tests/bench/tools.o",
         BUILD / "libweir.a"], timeout=120)
    return lambda word: int(run([folder / "peak", word]).stdout)


def test_memory_that_the_bench_gave_back_is_not_counted(peak_kb):
    assert 2000 < peak_kb("free") < 65536


def test_a_peak_below_the_memory_of_the_bench_is_unknown(peak_kb):
    assert peak_kb("keep") == 0


# ---- tests/bench/draw.c --------------------------------------------------------------------------

DRAW = r"""
#include <linux/bpf.h>
#include <stdio.h>
#include <bpf/bpf.h>
#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/draw.h"
#include "tests/bench/report.h"

void report_failure(struct report *r, const char *id, const char *why) { (void)r; (void)id; (void)why; }

#define PORTS (14 + 20)
#define IN(c, d, s, o, i) {.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)}

/* Sends a packet from port 40000 to 80 back with other ports, and aborts any other. */
static const struct bpf_insn change_ports[] = {
	IN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0),
	IN(BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0),
	IN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_ABORTED),
	IN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),
	IN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, PORTS + 4),
	IN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 4, 0),
	IN(BPF_LDX | BPF_MEM | BPF_W, 4, 2, PORTS, 0),
	IN(BPF_JMP32 | BPF_JNE | BPF_K, 4, 0, 2, 0x5000409c),
	IN(BPF_ST | BPF_MEM | BPF_W, 2, 0, PORTS, 7),
	IN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_TX),
	IN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
};

int main(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	struct draw *d;
	uint32_t verdict;

	for (size_t i = 0; i < BENCH_SOURCES; i++)
		sources[i] = (struct addr){.family = 4, .bytes = {10, 0, 0, 1}};
	d = draw_new(&(struct draw_options){.family = 4, .ack = true, .sent = true, .sources = sources});
	draw_target(d, bpf_prog_load(BPF_PROG_TYPE_XDP, "ports", "GPL", change_ports, ARRAY_SIZE(change_ports), &opts));
	for (int spaced = 0; spaced < 2; spaced++) {
		draw_space(d, spaced);
		draw_run(d, 5, &verdict);
		printf("%u\n", verdict);
	}
	return 0;
}
"""


def test_each_packet_has_the_ports_that_the_program_changes(tmp_path):
    """A balancer that rewrites ports gets the same flow again."""
    (tmp_path / "draw.c").write_text(DRAW)
    objects = [BUILD / f"tests/bench/{name}.o" for name in ("draw", "bench", "sets", "tools")]
    run(["gcc", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{BUILD}", "-o", tmp_path / "draw", tmp_path / "draw.c", *objects,
         BUILD / "libweir.a", "-lbpf", "-lelf", "-lz"], timeout=120)
    assert run([tmp_path / "draw"]).stdout.split() == ["3", "3"]


# ---- the whole bench -----------------------------------------------------------------------------

BENCH = BUILD / "tests/bench/bench"


def tools(folder, **others):
    """A PATH with `ip`, `rm`, and what else is given: a program, or the text of a script."""
    folder.mkdir()
    for name in ("ip", "rm"):
        (folder / name).symlink_to(shutil.which(name))
    for name, script in others.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


def rows_of(path):
    document = json.loads(path.read_text())
    return document["complete"], {row["id"]: row for row in document["rows"]}


def test_an_error_of_one_row_loses_no_other(tmp_path):
    out = tmp_path / "bench.json"
    result = subprocess.run([BENCH, "-r", "1", "-w", BUILD / "weir", "-o", out, "root", "drop-live", "apply-1000"],
                            env=tools(tmp_path / "bin"), text=True, capture_output=True, timeout=120, check=False)
    complete, rows = rows_of(out)
    assert result.returncode == 2 and complete
    for live in ("drop-live", "drop-live-sampled", "drop-live-1m"):
        assert "ethtool" in rows[live]["failed"], live
    assert rows["root"]["net_ns_min"] and rows["apply-1000"]["net_ns_min"] > 0
    assert "drop-live                    FAILED: 'ethtool -K" in result.stdout
    assert ", 3 failed," in result.stdout


def run_until(row, out, env):
    """Ends the bench as soon as the row is in the file."""
    with subprocess.Popen([BENCH, "-r", "1", "-o", out, row], env=env, stdout=subprocess.DEVNULL) as bench:
        end = time.monotonic() + 120
        while time.monotonic() < end and not (out.exists() and row in rows_of(out)[1]):
            time.sleep(0.05)
        bench.send_signal(signal.SIGTERM)
    return rows_of(out)


LOSES_ONCE = f"""#!/bin/sh
[ "$1" = -S ] || exec {shutil.which("ethtool")} "$@"
echo >>COUNT
lost=$([ "$(wc -l <COUNT)" = 2 ] && echo 100000 || echo 0)
{shutil.which("ethtool")} "$@" | awk -v lost="$lost" '/_xdp_packets:/ {{ $2 -= lost; lost = 0 }} {{ print " " $1 " " $2 }}'
"""


def test_a_round_that_lost_packets_is_repeated_and_rows_are_written_at_once(tmp_path):
    for name in ("wc", "awk"):
        assert shutil.which(name)
    script = LOSES_ONCE.replace("COUNT", str(tmp_path / "count")).replace("wc -l", shutil.which("wc") + " -l")
    script = script.replace("| awk", "| " + shutil.which("awk"))
    env = tools(tmp_path / "bin", ethtool=script)
    complete, rows = run_until("drop-live", tmp_path / "bench.json", env)
    assert not complete
    assert rows["drop-live"]["pps"] > 0
    assert rows["drop-live/empty"]["repeated"] == 1 and "repeated" not in rows["drop-live/nft-ingress"]


def test_rows_of_katran_need_its_source(tmp_path):
    result = subprocess.run([BENCH, "-o", tmp_path / "out.json", "katran"], text=True, capture_output=True, timeout=30,
                            check=False)
    assert result.returncode == 1
    assert result.stderr == "bench: the rows 'katran' need Katran's source: make bench ROWS=katran KATRAN=FOLDER\n"
    result = subprocess.run(["make", "-s", f"O={BUILD}", f"KATRAN={tmp_path}", BUILD / "tests/bench/katran/gue.o"],
                            cwd=ROOT, text=True, capture_output=True, timeout=60, check=False)
    assert result.returncode == 2
    assert f"KATRAN={tmp_path} has no katran/lib/bpf/balancer.bpf.c" in result.stderr
