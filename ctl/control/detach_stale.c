// SPDX-License-Identifier: GPL-2.0-only
// Detaches interfaces that a policy or a trial attached and that are no longer wanted.
#include "ctl/control/detach_stale.h"

#include <string.h>

#include "ctl/datapath/attach.h"
#include "ctl/datapath/attach_remove.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/reach.h"

void ifnames_text(const struct ifnames *names, struct text *ret)
{
	vec_each (names, name)
		text_addf(ret, "%s%s", name == names->at ? "" : " ", *name);
}

// By what the policy knows of the interface: a name that the device got later changes nothing.
static bool goes(const struct iface *iface, uint32_t number, uint32_t kept,
		 const struct reach *reach)
{
	if (iface->state == IFACE_FREE || !iface->generation || reach->classes.class[number])
		return false;
	return reach->named || iface->generation > kept;
}

// Detaches one interface. Keeps the first failure in *code and *err, so that the caller can
// continue.
static void detach_one(const struct instance *i, uint32_t number, const struct iface *iface,
		       struct ifnames *ret, int *code, struct err *err)
{
	struct err why = {0};
	bool there;
	int failed = attach_remove(i, number, &there, &why);

	if (!failed)
		memcpy(*vec_add(ret), iface->name, sizeof(iface->name));
	else if (!*code) {
		*code = failed;
		if (err)
			*err = why;
	}
}

int detach_stale(const struct instance *i, uint32_t kept, struct ifnames *ret, struct err *err)
{
	struct reach reach;
	int failed, code = reach_read(i, kept, &reach, err);
	uint32_t last = code ? 0 : WEIR_IFACES;
	struct iface iface;

	for (uint32_t n = 1; n < last; n++) {
		failed = instance_iface(i, n, &iface, code ? NULL : err);
		if (failed)
			code = code ? code : failed;
		else if (goes(&iface, n, kept, &reach))
			detach_one(i, n, &iface, ret, &code, err);
	}
	return code;
}

int detach_brought(const struct instance *i, struct ifnames *ret, struct err *err)
{
	struct iface iface;
	int failed, code = 0;

	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		if (!(i->knobs->brought & iface_bit(n)))
			continue;
		failed = instance_iface(i, n, &iface, code ? NULL : err);
		if (failed)
			code = code ? code : failed;
		else if (iface.state != IFACE_FREE)
			detach_one(i, n, &iface, ret, &code, err);
	}
	return code;
}

void detach_list_brought(const struct instance *i, struct ifnames *ret)
{
	struct iface iface;

	for (uint32_t n = 0; instance_next_iface(i, &n, &iface);)
		if (i->knobs->brought & iface_bit(n))
			memcpy(*vec_add(ret), iface.name, sizeof(iface.name));
}
