// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/control/leave.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/generation.h"

static bool goes(const struct iface *row, uint32_t kept, const struct generation_about *about)
{
	if (row->state == IFACE_FREE || !row->generation || generation_class(about, row->name))
		return false;
	return about->n_ifaces || row->generation > kept;
}

int leave_interfaces(const struct instance *i, uint32_t kept, struct ifnames *ret, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code = generation_read_about(i, kept, about, err);
	uint32_t last = code ? 0 : WEIR_IFACES;

	for (uint32_t n = 1; n < last; n++) {
		struct iface row;
		struct err why = {0};
		bool there;
		int failed = instance_iface(i, n, &row, &why);

		if (!failed && !goes(&row, kept, about))
			continue;
		if (!failed)
			failed = attach_remove(i, n, &there, &why);
		if (!failed)
			memcpy(*vec_add(ret), row.name, sizeof(row.name));
		else if (!code) {
			code = failed;
			*err = why;
		}
	}
	return code;
}
