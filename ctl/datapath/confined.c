// SPDX-License-Identifier: GPL-2.0-only
// Namespaces and capabilities of this process.
#include "ctl/datapath/confined.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

// Inodes of the initial namespaces, the same since Linux 3.8 (PROC_PID_INIT_INO and
// PROC_USER_INIT_INO of include/linux/proc_ns.h). Nothing else distinguishes a container from the
// machine: its root has all files and, if it is privileged, all capabilities.
#define PID_INITIAL  0xEFFFFFFC
#define USER_INITIAL 0xEFFFFFFD

// Without /proc nothing is known: as on the machine.
static bool is_other(const char *path, ino_t initial)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino != initial;
}

bool confined_pids(void)
{
	return is_other("/proc/self/ns/pid", PID_INITIAL);
}

uint64_t confined_lacks(uint64_t effective, uint64_t needed)
{
	return effective & CONFINED_BIT(CAP_SYS_ADMIN) ? 0 : needed & ~effective;
}

// Capabilities of this process; false: the kernel does not report them.
static bool get_effective(uint64_t *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, data))
		return false;
	*ret = (uint64_t)data[1].effective << 32 | data[0].effective;
	return true;
}

static void add_names(struct text *t, uint64_t capabilities)
{
	static const struct {
		int bit;
		const char *name;
	} all[] = {
		{CAP_BPF, "CAP_BPF"},
		{CAP_NET_ADMIN, "CAP_NET_ADMIN"},
		{CAP_PERFMON, "CAP_PERFMON"},
		{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (capabilities & CONFINED_BIT(all[i].bit))
			text_addf(t, "%s%s", t->len ? ", " : "", all[i].name);
}

void confined_explain(struct err *err, uint64_t needed)
{
	CLEANUP_TEXT struct text names = {0};
	uint64_t effective;

	if (!err || (err->code != EPERM && err->code != EACCES) || !get_effective(&effective))
		return;
	add_names(&names, confined_lacks(effective, needed));
	if (names.len && geteuid())
		err_hint_root(err);
	else if (names.len)
		err_hint(err, "this process lacks %s", text_get(&names));
	else if (is_other("/proc/self/ns/user", USER_INITIAL))
		err_hint(err, "this process is in a user namespace, where no capability suffices "
			      "for BPF");
}
