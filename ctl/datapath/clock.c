// SPDX-License-Identifier: GPL-2.0-only
// Reads jiffies64 through a BPF program, the only exact access of user space to it.
#include "ctl/datapath/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "xdp/clock.skel.h"

#define NSEC_PER_SEC 1000000000u

int clock_load(int *ret_fd, struct err *err)
{
	struct clock_bpf *skel = clock_bpf__open_and_load();
	int fd;

	if (!skel)
		return err_system(err, errno, "cannot load the clock program");
	fd = fcntl(bpf_program__fd(skel->progs.weir_clock), F_DUPFD_CLOEXEC, 0);
	clock_bpf__destroy(skel);
	if (fd < 0)
		return err_system(err, errno, "cannot pin the clock program");
	*ret_fd = fd;
	return 0;
}

// The coarse clock ticks once a jiffy, so its resolution is 1/HZ.
uint32_t clock_hz(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || tick.tv_nsec < 1)
		return 250;
	return (uint32_t)((NSEC_PER_SEC + (uint64_t)tick.tv_nsec / 2) / (uint64_t)tick.tv_nsec);
}

int clock_read(int prog_fd, struct clock *ret, struct err *err)
{
	uint64_t jiffies = 0;
	// For this type of program the kernel writes the context back into ctx_in.
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &jiffies, .ctx_size_in = sizeof(jiffies));

	if (bpf_prog_test_run_opts(prog_fd, &opts))
		return err_system(err, errno, "cannot read the kernel's clock");
	*ret = (struct clock){
		.jiffies = jiffies,
		.wall_ms = time_ms(CLOCK_REALTIME),
		.hz = clock_hz(),
	};
	return 0;
}

void clock_boot(char ret[CLOCK_BOOT])
{
	CLEANUP_FD int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, ret, CLOCK_BOOT - 1) != CLOCK_BOOT - 1)
		ret[0] = '\0';
	else
		ret[CLOCK_BOOT - 1] = '\0';
}

uint64_t clock_after_ms(const struct clock *c, uint64_t ms)
{
	if (ms / 1000 > UINT64_MAX / 2 / c->hz)
		return UINT64_MAX;
	return c->jiffies + ms / 1000 * c->hz + (ms % 1000 * c->hz + 999) / 1000;
}

uint64_t clock_ms_until(const struct clock *c, uint64_t jiffies)
{
	uint64_t left = jiffies > c->jiffies ? jiffies - c->jiffies : 0;

	return left / c->hz * 1000 + left % c->hz * 1000 / c->hz;
}

uint64_t clock_ms_since(const struct clock *c, uint64_t jiffies)
{
	uint64_t past = jiffies < c->jiffies ? c->jiffies - jiffies : 0;

	return past / c->hz * 1000 + past % c->hz * 1000 / c->hz;
}

uint64_t clock_to_jiffies(const struct clock *c, uint64_t wall_s)
{
	if (!wall_s || wall_s == UINT64_MAX)
		return wall_s;
	if (wall_s > UINT64_MAX / 2000)
		return UINT64_MAX;
	return wall_s * 1000 <= c->wall_ms ? 1 : clock_after_ms(c, wall_s * 1000 - c->wall_ms);
}

uint64_t clock_to_wall_s(const struct clock *c, uint64_t jiffies)
{
	if (!jiffies || jiffies == UINT64_MAX)
		return jiffies;
	if (jiffies <= c->jiffies)
		return (c->wall_ms - clock_ms_since(c, jiffies)) / 1000;
	return (c->wall_ms + clock_ms_until(c, jiffies) + 999) / 1000;
}
