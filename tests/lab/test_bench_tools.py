# SPDX-License-Identifier: GPL-2.0-only
"""tests/bench/tools.c: the peak of a command is its own, not the memory of the bench that ran it."""

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
