// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: the description of a packet for `explain` and `expect`, up to the bytes of its
// frames.
#include "ctl/base/mem.h"
#include "ctl/control/frame.h"
#include "tests/fuzz/environment.h"
#include "tests/fuzz/fuzz.h"

// Names for the description.
static const char policy[] = "interface eth0, eth1\ndefine here = 192.0.2.0/30, 2001:db8::/64\n"
			     "set them { 203.0.113.7, x.test }\n";

static unsigned read16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

// The parsed frame must have the values of the packet.
static void check_frame(const struct resolved_packet *p, const uint8_t *frame, size_t length)
{
	size_t link = p->vlan ? 18 : 14;

	fuzz_check(length >= link && length <= FRAME_MAX);
	fuzz_check(read16(frame + link - 2) == p->ethertype);
	fuzz_check(!p->vlan || (read16(frame + 14) & 0xfff) == p->vlan);
	if (!p->ip)
		return;
	fuzz_check(p->from.family == p->to.family);
	if (p->from.family == 4)
		fuzz_check(read16(frame + link + 2) == length - link &&
			   frame[link + 9] == p->proto);
	else
		fuzz_check(read16(frame + link + 4) == length - link - 40);
	fuzz_check(!p->length || p->length == length - link);
}

static void check_packet(const struct resolved_packet *p)
{
	uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	struct err err = {0};
	size_t length;

	if (frame_build(p, frame, &length, &err) == 0)
		check_frame(p, frame, length);
	else
		fuzz_check(err.text[0]);
	free(frame);
}

static void check_expect(const struct resolved_expect *e)
{
	fuzz_check(e->n_packets && e->n_packets <= 64);
	for (size_t i = 0; i < e->n_packets; i++)
		check_packet(&e->packets[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_FREE char *words = mem_strndup((const char *)data, size);
	CLEANUP_FREE char *text = mem_printf("%sexpect pass %s\n", policy, words);
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;
	struct fuzz_environment environment;

	fuzz_environment_init(&environment, text, strlen(text), "", 0);
	resolved = policy_load("main", &environment.env, NULL, 0, diag);
	fuzz_check(!resolved == !!diag_errors(diag));
	for (size_t i = 0; resolved && i < resolved->n_expects; i++)
		check_expect(&resolved->expects[i]);
	return 0;
}
