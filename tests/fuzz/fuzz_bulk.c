// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: lists of what to block, and the file of the overlay's claims. The first byte chooses.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/control/bulk.h"
#include "ctl/control/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

// Strings of the result must be readable after the input is gone.
static void check_item(const struct bulk_item *item, bool wide)
{
	static const struct prefix none;

	if (item->name)
		check(item->name[0] && !memcmp(&item->prefix, &none, sizeof(none)));
	else
		check(item->prefix.addr.family == 4 || item->prefix.addr.family == 6);
	if (item->note)
		check(item->note[0] && strlen(item->note) <= 255);
	if (!item->name && !wide)
		check(item->prefix.len >= 8 && !addr_is_loopback(&item->prefix.addr));
	check(!(item->to && item->both) && item->for_ms <= BULK_FOR_MAX_MS && item->line);
}

// A copy of exact size, so that a byte read beyond it is found; gone before the result is looked at.
static void fuzz_bulk(const char *text, size_t size, bool wide)
{
	struct bulk b = {0};
	char *copy = malloc(size ? size : 1);

	memcpy(copy, text, size);
	bulk_add_text(&b, copy, size, wide);
	free(copy);
	vec_each (&b.items, item)
		check_item(item, wide);
	vec_each (&b.errors, error)
		check(error->line && error->text[0] &&
		      memchr(error->text, '\0', sizeof(error->text)));
	check(b.errors.n <= b.error_count && b.names <= b.items.n);
	bulk_free(&b);
}

// What is accepted must print to a text that is read as the same book.
static void fuzz_records(const char *text, size_t size)
{
	struct records r, again;
	struct err err = {0};
	char *first, *second;
	size_t len, len_again;

	if (records_parse(text, size, &r, &err) < 0) {
		check(err.text[0] && !r.list.n && !r.holders.n);
		return;
	}
	first = records_print(&r, &len);
	check(records_parse(first, len, &again, &err) == 0);
	second = records_print(&again, &len_again);
	check(len == len_again && !memcmp(first, second, len) && again.list.n == r.list.n);
	records_free(&r);
	records_free(&again);
	free(first);
	free(second);
}

// A command's word is NUL-terminated.
static void fuzz_word(const char *text, size_t size)
{
	struct bulk b = {0};
	char *word = mem_strndup(text, size);

	bulk_add_word(&b, word);
	free(word);
	check((b.items.n > 0) == (b.error_count == 0));
	bulk_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
	case 1:
		fuzz_bulk(text, size - 1, data[0] % 2);
		break;
	case 2:
		fuzz_records(text, size - 1);
		break;
	default:
		fuzz_word(text, size - 1);
	}
	return 0;
}
