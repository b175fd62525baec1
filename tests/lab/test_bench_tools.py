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
