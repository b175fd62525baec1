// SPDX-License-Identifier: GPL-2.0-only
// The description of a policy in the kernel, pinned as INSTANCE_FOLDER/gen/NUMBER/about.
#include "ctl/datapath/generation_about.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/parts.h"

#define FILE_NAME "about"

static int cannot_read(struct err *err)
{
	return err_system(err, errno, "cannot read the policy's origin");
}

static int cannot_write(struct err *err)
{
	return err_system(err, errno, "cannot write the policy's origin");
}

int generation_about_pin(const char *generation_folder, const struct generation_about *about,
			 struct err *err)
{
	CLEANUP_FD int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_about", sizeof(uint32_t),
					   sizeof(*about), 1, NULL);
	uint32_t zero = 0;

	if (fd < 0 || bpf_map_update_elem(fd, &zero, about, BPF_ANY))
		return cannot_write(err);
	return bpffs_put(generation_folder, FILE_NAME, fd, err);
}

static int open_about(const struct instance *i, uint32_t number, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(i->folder, number);
	int code = bpffs_get(folder, FILE_NAME, ret_fd, err);

	return code == -ENOENT ? err_stated(err, ENOENT, "generation %u is not in bpffs", number)
			       : code;
}

int generation_read_about(const struct instance *i, uint32_t number, struct generation_about *ret,
			  struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = open_about(i, number, &fd, err);

	if (code)
		return code;
	if (bpf_map_lookup_elem(fd, &zero, ret))
		return cannot_read(err);
	for (uint32_t n = 0; n < ret->n_sets && n < POLICY_SETS_MAX; n++)
		ret->sets[n].generation = number;
	return 0;
}

int generation_finish(const struct instance *i, uint32_t number, const char *made_of,
		      struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = open_about(i, number, &fd, err);

	if (code)
		return code;
	if (bpf_map_lookup_elem(fd, &zero, about))
		return cannot_read(err);
	snprintf(about->made_of, sizeof(about->made_of), "%s", made_of);
	return bpf_map_update_elem(fd, &zero, about, BPF_ANY) ? cannot_write(err) : 0;
}

uint8_t generation_class(const struct generation_about *about, const char *device)
{
	size_t best = 0, best_len = 0;

	for (size_t i = 0; i < about->n_ifaces && i < WEIR_IFACES; i++) {
		const char *name = about->ifaces[i];
		bool pattern = strchr(name, '*');
		size_t len = strlen(name) + (pattern ? 0 : sizeof(about->ifaces[0]));

		if (len > best_len &&
		    (pattern ? !fnmatch(name, device, 0) : !strcmp(name, device))) {
			best = i + 1;
			best_len = len;
		}
	}
	return (uint8_t)best;
}
