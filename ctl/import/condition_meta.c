// SPDX-License-Identifier: GPL-2.0-only
// Conditions on the interface, the family and the marks that iptables.c sets.
#include "ctl/import/condition_meta.h"

#include <string.h>

#include "ctl/base/vec.h"

static bool name_matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return !strncmp(pattern, name, len - 1);
	return !strcmp(pattern, name);
}

struct device_names { // of devices, without lo
	VEC(const char *) at;
	bool known;     // each is a name
	bool unsettled; // a device that is made later may have such a name
};

static bool names_have(const struct device_names *names, const char *device)
{
	vec_each (&names->at, name)
		if (name_matches(*name, device))
			return true;
	return false;
}

static bool is_device(const struct import_options *options, const char *name)
{
	for (size_t i = 0; i < options->n_devices; i++)
		if (!strcmp(options->devices[i].name, name))
			return true;
	return false;
}

static void read_names(const struct condition_place *place, const struct json *right,
		       struct device_names *ret)
{
	const struct json *list = value_elements(&place->values, right);
	bool many = json_kind(list) == JSON_IS_ARRAY;
	size_t n = many ? json_length(list) : 1;

	ret->known = list && json_kind(list) != JSON_IS_OBJECT && n;
	if (place->values.cache)
		place->values.cache->work += n * (place->options->n_devices + 1);
	for (size_t i = 0; ret->known && i < n; i++) {
		const struct json *j = many ? json_at(list, i) : list;
		const char *name = json_kind(j) == JSON_IS_STRING ? json_text(j) : NULL;

		ret->known = name && name[0];
		if (!ret->known || !strcmp(name, "lo"))
			continue;
		ret->unsettled |= strchr(name, '*') || !is_device(place->options, name);
		vec_push(&ret->at, name);
	}
}

// Interfaces of the policy of whose frames some, or all, arrive at a device with one of the names.
static void find_interfaces(const struct import_options *options, const struct device_names *names,
			    uint64_t *ret_some, uint64_t *ret_all)
{
	*ret_some = *ret_all = 0;
	for (size_t k = 0; k < options->n_interfaces; k++) {
		bool known = false, some = names->unsettled, all = true;

		for (size_t i = 0; i < options->n_devices; i++) {
			const struct import_device *d = &options->devices[i];
			bool in = d->on >> k & 1 && names_have(names, d->name);

			known |= d->on >> k & 1;
			some |= in;
			all &= in || !(d->on >> k & 1);
		}
		*ret_some |= (uint64_t)(some || !known) << k;
		*ret_all |= (uint64_t)(known && all) << k;
	}
}

// XDP is below all other devices: of bridges, VLANs and bonds it sees the frames of their ports.
static void read_interface(const struct condition_place *place, const char *op,
			   const struct json *right, struct matches *ret)
{
	uint64_t all = (1ull << place->options->n_interfaces) - 1, some_on, all_on, bits;
	bool negated = !strcmp(op, "!=");
	struct match m = match_any;
	struct device_names names = {0};

	read_names(place, right, &names);
	if (names.known && !names.at.n) { // XDP is not on lo
		m.never = !negated;
	} else if (!names.known || !all || (!negated && strcmp(op, "==") && strcmp(op, "in"))) {
		match_omit(&m);
	} else {
		find_interfaces(place->options, &names, &some_on, &all_on);
		if (place->values.drops && some_on != all_on)
			m.parts = MATCH_PART_ON;
		bits = negated != (m.parts != 0) ? all_on : some_on;
		bits = negated ? all & ~bits : bits;
		m.on = bits == all ? ~0ull : bits;
		m.never = !bits && some_on == all_on;
		if (!m.parts && some_on != all_on)
			match_omit(&m);
	}
	vec_free(&names.at);
	if (!m.on && !m.never) { // the drop has no interface where it is certain
		m = match_any;
		match_omit(&m);
	}
	if (!m.never)
		vec_push(ret, m);
}

static void read_family(const char *op, const struct json *right, struct matches *ret)
{
	const char *word = json_kind(right) == JSON_IS_STRING ? json_text(right) : "";
	bool v4 = !strcmp(word, "ipv4") || !strcmp(word, "ip");
	bool v6 = !strcmp(word, "ipv6") || !strcmp(word, "ip6");
	struct match m = match_any;

	if ((!v4 && !v6) || (strcmp(op, "==") && strcmp(op, "!="))) {
		condition_omit(ret);
		return;
	}
	m.families = v4 == !strcmp(op, "==") ? MATCH_V4 : MATCH_V6;
	vec_push(ret, m);
}

static void read_mark(const struct condition_place *place, const struct json *right,
		      struct matches *ret)
{
	uint64_t n = json_number(right);
	struct match m = match_any;

	if (n < IMPORT_MARK || n - IMPORT_MARK >= place->options->n_marks) {
		condition_omit(ret);
		return;
	}
	m.rewrites = place->options->marks[n - IMPORT_MARK].rewrites;
	match_omit(&m);
	vec_push(ret, m);
}

void condition_meta(const struct condition_place *place, const char *key, const char *op,
		    const struct json *right, struct matches *ret)
{
	if (!strcmp(key, "iifname") || !strcmp(key, "iif"))
		read_interface(place, op, right, ret);
	else if (!strcmp(key, "nfproto") || !strcmp(key, "protocol"))
		read_family(op, right, ret);
	else if (!strcmp(key, "mark"))
		read_mark(place, right, ret);
	else
		condition_omit(ret);
}
