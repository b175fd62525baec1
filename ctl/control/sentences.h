// SPDX-License-Identifier: GPL-2.0-only
// A list of sentences, each of which is listed once.
#pragma once

#include <stddef.h>

struct sentences {
	char **at;
	size_t n, cap;
};

// Adds the text unless the list has it, and takes it over.
void sentences_add(struct sentences *list, char *text);
void sentences_free(struct sentences *list);
