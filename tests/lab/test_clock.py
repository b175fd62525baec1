# SPDX-License-Identifier: GPL-2.0-only
"""The wall clock is set while entries are active: they keep owner, note and end."""

import json
import os

import pytest

from labnet import run

# The time of day that weir reads. The clocks of the kernel and of other processes are unchanged.
SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	const char *by = getenv("CLOCK_SHIFT_S");
	int result = real(id, ts);

	if (by && id == CLOCK_REALTIME)
		ts->tv_sec += atol(by);
	return result;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
"""
DAY = 86400


@pytest.fixture(scope="module", name="library")
def shifting_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clock")
    (folder / "shift.c").write_text(SHIFT)
    run(["gcc", "-shared", "-fPIC", "-o", folder / "shift.so", folder / "shift.c"])
    return folder / "shift.so"


@pytest.fixture(name="at")
def weir_at_another_time(on, library):
    """at(SECONDS, *ARGUMENTS): runs weir with the wall clock off by that much."""
    def call(by, *args, **options):
        return on(*args, env=os.environ | {"LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(by)}, **options)
    return call


def listed(done):
    return {entry["address"]: entry for entry in json.loads(done.stdout)["entries"]}


@pytest.mark.parametrize("by", [DAY, -DAY, 7200, 400 * DAY, -400 * DAY])
def test_entries_keep_what_they_had(pair, on, at, by):
    on("block", "192.0.2.1", "--for", "1h", "--note", "abuse 4711", "--origin", "ids")
    on("block", "192.0.2.2", "--note", "stays")
    on("block", "192.0.2.3", "--for", "2s")
    for command in ("list",), ("block", "192.0.2.9"), ("unblock", "192.0.2.9"), ("list",):
        entries = listed(at(by, "-j", "list"))
        hour, stays = entries["192.0.2.1"], entries["192.0.2.2"]
        assert 3500 < hour["left_s"] <= 3601 and hour["age_s"] < 60, (command, hour)
        assert [(h["origin"], h["note"]) for h in hour["holders"]] == [("ids", "abuse 4711")]
        assert [h["note"] for h in stays["holders"]] == ["stays"] and stays["age_s"] < 60
        at(by, *command)
    while not pair.free("192.0.2.3")[0]:
        pass
    assert pair.free("192.0.2.1", "192.0.2.2") == [False, False]
    assert "192.0.2.3" not in listed(at(by, "-j", "list"))
    # Back to the true time.
    entries = on.entries()
    assert set(entries) == {"192.0.2.1", "192.0.2.2"}
    assert 3500 < entries["192.0.2.1"]["left_s"] <= 3601
    assert entries["192.0.2.1"]["holders"][0]["note"] == "abuse 4711"


@pytest.mark.parametrize("by", [DAY, -DAY])
def test_they_come_back_with_what_is_left(pair, on, at, by):
    """Detach and attach within a boot, with the clock set in between."""
    on("block", "192.0.2.1", "--for", "1h", "--note", "abuse 4711")
    on("detach")
    at(by, "attach", "near0", "--max-entries", "64")
    entry = listed(at(by, "-j", "list"))["192.0.2.1"]
    assert 3500 < entry["left_s"] <= 3601 and entry["holders"][0]["note"] == "abuse 4711"
    assert pair.free("192.0.2.1") == [False]
