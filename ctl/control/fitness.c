// SPDX-License-Identifier: GPL-2.0-only
// Turns the facts about a device and its driver into messages, before and after an attach.
#include "ctl/control/fitness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/driver.h"
#include "ctl/net/ethtool.h"

// ---- what speaks against native mode ------------------------------------------------------------

static void add(struct advices *a, enum advice_kind kind, char *text, char *mend)
{
	vec_push(a, ((struct advice){kind, text, mend}));
}

static char *mend_with_generic(const struct native_facts *f)
{
	return f->attached ? mem_printf("weir detach %s, weir attach %s --mode generic", f->name,
					f->name)
			   : mem_printf("weir attach %s --mode generic", f->name);
}

static void check_mtu(const struct native_facts *f, const struct driver *d, struct advices *ret)
{
	bool loses = d->excess == DRIVER_LOSES;

	// Some kernels report several buffers for a driver that still loses packets.
	if (!d->mtu || f->mtu <= d->mtu || (f->buffers && d->buffers[0]) || (f->attached && !loses))
		return;
	add(ret, loses ? ADVICE_LOSES : ADVICE_REFUSES,
	    !loses ? mem_printf("MTU %u is above %u, the limit of native mode", f->mtu, d->mtu)
	    : f->attached
		    ? mem_printf("packets longer than %u bytes are lost in native mode", d->mtu)
		    : mem_printf("MTU %u is too large for native mode, which would lose "
				 "packets longer than %u bytes",
				 f->mtu, d->mtu),
	    mem_printf("ip link set %s mtu %u", f->name, d->mtu));
}

static void check_runs(const struct native_facts *f, const struct driver *d, struct advices *ret)
{
	if (d->runs == RUNS_UNTIL_DOWN)
		add(ret, ADVICE_FORGETS,
		    mem_strdup(
			    "the program stops running without a message when the device goes down "
			    "or its MTU changes"),
		    mend_with_generic(f));
	if (d->runs == RUNS_HEADROOM && f->headroom != HEADROOM_YES)
		add(ret, ADVICE_IDLE,
		    mem_strdup(f->headroom == HEADROOM_NO
				       ? "a program in native mode is accepted and not run, as "
					 "the Xen backend gives frames no headroom for XDP"
				       : "a program in native mode may be accepted and not run: "
					 "whether the Xen backend gives frames headroom for XDP "
					 "cannot be read"),
		    mend_with_generic(f));
}

static char *mend_half(const struct native_facts *f)
{
	const struct ethtool *e = &f->e;
	uint32_t most = (e->rx_max < e->tx_max ? e->rx_max : e->tx_max) / 2;

	return e->combined_max
		       ? mem_printf("ethtool -L %s combined %u", f->name, e->combined_max / 2)
		       : mem_printf("ethtool -L %s rx %u tx %u", f->name, most, most);
}

// XDP gets as many channels as the stack has.
static void check_half(const struct native_facts *f, struct advices *ret)
{
	const struct ethtool *e = &f->e;
	uint32_t used = e->combined_max ? e->combined : e->tx;
	uint32_t max = e->combined_max ? e->combined_max : e->tx_max;

	// With one channel, none is left for XDP.
	if (max == 1)
		add(ret, ADVICE_REFUSES,
		    mem_strdup("the device has one channel, and XDP needs a second one"),
		    mem_strdup(""));
	else if (!e->combined_max && e->rx != e->tx)
		add(ret, ADVICE_REFUSES,
		    mem_printf("channels for receiving (%u) and sending (%u) differ in number",
			       e->rx, e->tx),
		    mend_half(f));
	else if (2 * used > max)
		add(ret, ADVICE_REFUSES,
		    mem_printf("%u of %u %s in use, and XDP needs as many again", used, max,
			       num_plural(used, "channel is", "channels are")),
		    mend_half(f));
}

static void check_combined(const struct native_facts *f, struct advices *ret)
{
	uint32_t n = f->e.rx < f->e.tx ? f->e.rx : f->e.tx;

	if (f->e.combined || !n)
		return;
	add(ret, ADVICE_REFUSES,
	    mem_strdup("separate channels for receiving and sending, and XDP needs combined ones"),
	    mem_printf("ethtool -L %s rx 0 tx 0 combined %u", f->name, n));
}

// The command that frees queues which XDP can reserve.
static char *mend_queues(const struct native_facts *f)
{
	uint32_t max = f->e.combined_max;

	if (max <= f->cpus)
		return mem_printf("configure the virtual machine's card with more than %u queues",
				  f->cpus);
	if (!f->attached)
		return mem_printf("ethtool -L %s combined %u", f->name, max - f->cpus);
	return mem_printf("weir detach %s, ethtool -L %s combined %u, weir attach %s", f->name,
			  f->name, max - f->cpus, f->name);
}

// Attached, the queues in use are the reserved ones and at least one more, unless there were too
// few to reserve any.
static void check_reserved(const struct native_facts *f, struct advices *ret)
{
	uint32_t now = f->e.combined, max = f->e.combined_max;

	if (!max || (f->attached ? now > f->cpus : now + f->cpus <= max))
		return;
	add(ret, ADVICE_SHARES,
	    mem_printf("too few queues for XDP_TX and redirects: %u CPUs share the queues of the "
		       "stack, under a lock",
		       f->cpus),
	    mend_queues(f));
}

static void check_channels(const struct native_facts *f, const struct driver *d,
			   struct advices *ret)
{
	bool known = f->e.combined_max || (f->e.rx_max && f->e.tx_max);

	if (d->channels == CHANNELS_RESERVED)
		check_reserved(f, ret);
	else if (d->channels == CHANNELS_HALF && known && !f->attached)
		check_half(f, ret);
	else if (d->channels == CHANNELS_COMBINED && known && !f->attached)
		check_combined(f, ret);
}

// A driver without a row may refuse a program with any of these settings.
static void check_clashes(const struct native_facts *f, const struct driver *d, struct advices *ret)
{
	unsigned clashes = f->attached ? 0 : d ? d->clashes : CLASH_ALL;

	if (clashes & CLASH_LRO && f->e.lro == ETHTOOL_ON)
		add(ret, ADVICE_REFUSES, mem_strdup("the device merges packets (LRO)"),
		    mem_printf("ethtool -K %s lro off", f->name));
	if (clashes & CLASH_HW_GRO && f->e.rx_gro_hw == ETHTOOL_ON)
		add(ret, ADVICE_REFUSES, mem_strdup("the device merges packets (HW-GRO)"),
		    mem_printf("ethtool -K %s rx-gro-hw off", f->name));
	if (clashes & CLASH_HDS && f->hds == ETHTOOL_ON)
		add(ret, ADVICE_REFUSES,
		    mem_strdup(
			    "the device splits headers from data (HDS), a reason from Linux 6.14 on"),
		    mem_printf("ethtool -G %s tcp-data-split off", f->name));
	if (clashes & CLASH_SRIOV && f->vfs)
		add(ret, ADVICE_REFUSES,
		    mem_printf("%u virtual %s in use (SR-IOV)", f->vfs,
			       num_plural(f->vfs, "function is", "functions are")),
		    mem_printf("echo 0 > /sys/class/net/%s/device/sriov_numvfs", f->name));
}

static void check_redirect(const struct native_facts *f, const struct driver *d,
			   struct advices *ret)
{
	uint32_t n = f->e.combined, max = f->e.combined_max;

	if (d->redirect != REDIRECT_CPUS || !n || n >= f->cpus_online)
		return;
	add(ret, ADVICE_DROPS,
	    mem_printf("frames that CPUs %u to %u redirect to the device are lost, since it has "
		       "%u %s",
		       n, f->cpus_online - 1, n, num_plural(n, "channel", "channels")),
	    max >= f->cpus_online
		    ? mem_printf("ethtool -L %s combined %u", f->name, f->cpus_online)
		    : mem_printf("ethtool -L %s combined %u, and in /proc/irq/*/smp_affinity_list "
				 "only CPUs 0 to %u for received packets",
				 f->name, max, max - 1));
}

void fitness_advise(const struct native_facts *f, struct advices *ret)
{
	const struct driver *d = driver_find(f->driver);

	if (d) {
		check_mtu(f, d, ret);
		check_runs(f, d, ret);
		check_channels(f, d, ret);
		check_redirect(f, d, ret);
	}
	check_clashes(f, d, ret);
}

void fitness_look(const struct link *link, struct advices *ret)
{
	struct native_facts f;

	native_facts(link, &f);
	fitness_advise(&f, ret);
}

void fitness_free(struct advices *a)
{
	vec_each (a, one) {
		free(one->text);
		free(one->mend);
	}
	vec_free(a);
}

const struct advice *fitness_find(const struct advices *a, enum advice_kind kind)
{
	vec_each (a, one)
		if (one->kind == kind)
			return one;
	return NULL;
}

// ---- messages -----------------------------------------------------------------------------------

#define FORGETS "driver '%s' leaves native mode silently when %s goes down or its MTU changes"

// Refused, but not by the user's choice: generic mode may do.
static bool unfit(struct err *ret_why)
{
	ret_why->kind = ERR_SYSTEM;
	ret_why->code = EOPNOTSUPP;
	return false;
}

bool fitness_native(const struct advices *a, const struct link *link, enum attach_mode mode,
		    struct err *ret_why)
{
	const struct advice *loses = fitness_find(a, ADVICE_LOSES);
	const struct advice *idle = fitness_find(a, ADVICE_IDLE);

	if (loses) {
		err_system(ret_why, EMSGSIZE, "cannot attach to '%s' in native mode", link->name);
		err_hint(ret_why, "driver '%s' would lose packets at MTU %u: %s", link->driver,
			 link->mtu, loses->mend);
		return false;
	}
	if (mode != ATTACH_AUTO)
		return true;
	if (idle)
		err_refused(ret_why, "driver '%s': %s", link->driver, idle->text);
	else if (fitness_find(a, ADVICE_FORGETS))
		err_refused(ret_why, FORGETS, link->driver, link->name);
	else
		return true;
	return unfit(ret_why);
}

// A reason that has no room is left out as a whole: half a command is worse than none.
const char *fitness_refusal(const struct advices *a, fitness_text buf)
{
	size_t len = 0;

	buf[0] = '\0';
	vec_each (a, one) {
		CLEANUP_FREE char *text = mem_printf("%s%s%s%s", len ? "; " : "", one->text,
						     one->mend[0] ? ": " : "", one->mend);

		if (one->kind != ADVICE_REFUSES || len + strlen(text) >= sizeof(fitness_text))
			continue;
		memcpy(buf + len, text, strlen(text) + 1);
		len += strlen(text);
	}
	return buf;
}

__attribute__((format(printf, 3, 4))) static void append(char *notice, size_t size, const char *fmt,
							 ...)
{
	size_t len = strlen(notice);
	va_list ap;

	if (len && len + 2 < size) {
		memcpy(notice + len, "; ", 3);
		len += 2;
	}
	va_start(ap, fmt);
	vsnprintf(notice + len, size - len, fmt, ap);
	va_end(ap);
}

void fitness_warn(const struct advices *a, const struct link *link, enum iface_mode mode,
		  char *notice, size_t size)
{
	const struct advice *idle = fitness_find(a, ADVICE_IDLE);

	if (mode != IFACE_NATIVE)
		return;
	if (idle)
		append(notice, size, "driver '%s': %s (%s)", link->driver, idle->text, idle->mend);
	if (fitness_find(a, ADVICE_FORGETS))
		append(notice, size, FORGETS ": weir detach, weir attach then", link->driver,
		       link->name);
}
