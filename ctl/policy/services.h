// SPDX-License-Identifier: GPL-2.0-only
// The names of ports in /etc/services.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/policy/arena.h"
#include "ctl/policy/index.h"

#define SERVICES_PATH "/etc/services"

struct services {
	const char *path; // for messages
	struct arena arena;
	struct index index; // "name/proto" to port
};

// Reads the text of a services file: "NAME PORT/PROTO ALIAS…", '#' to the end. Lines of another
// form are left out, as getservbyname does; the first of two equal names counts.
void services_read(struct services *s, const char *text, size_t len);
// The port of a name or alias; -ENOENT.
int services_find(const struct services *s, const char *name, const char *proto, uint16_t *ret);
void services_free(struct services *s);
