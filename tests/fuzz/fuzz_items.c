// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: items to block, as text. The first byte selects a list or an argument of a command.
#include "ctl/control/entries/items.h"
#include "tests/fuzz/fuzz.h"

// The strings of the result must be readable after the input was freed.
static void check_item(const struct item *item, bool wide)
{
	static const struct prefix none;

	if (item->name)
		fuzz_check(item->name[0] && !memcmp(&item->prefix, &none, sizeof(none)));
	else
		fuzz_check(item->prefix.addr.family == 4 || item->prefix.addr.family == 6);
	if (item->note)
		fuzz_check(item->note[0] && strlen(item->note) <= 255);
	if (!item->name && !wide)
		fuzz_check(item->prefix.len >= 8 && !addr_is_loopback(&item->prefix.addr));
	fuzz_check(!(item->to && item->both) && item->for_ms <= ITEMS_FOR_MAX_MS && item->line);
}

// Frees the text before the result is read.
static void fuzz_items(const char *text, size_t size, bool wide)
{
	struct items b = {0};
	char *copy = fuzz_copy(text, size);

	items_add_text(&b, copy, size, wide);
	free(copy);
	vec_each (&b.items, item)
		check_item(item, wide);
	vec_each (&b.errors, error)
		fuzz_check(error->line && error->text[0] &&
			   memchr(error->text, '\0', sizeof(error->text)));
	fuzz_check(b.errors.n <= b.error_count && b.names <= b.items.n);
	items_free(&b);
}

// Arguments are NUL-terminated.
static void fuzz_word(const char *text, size_t size)
{
	struct items b = {0};
	char *word = mem_strndup(text, size);

	items_add_words(&b, (const char *const *)&word, 1);
	free(word);
	fuzz_check((b.items.n > 0) == (b.error_count == 0));
	items_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (!size)
		return 0;
	if (data[0] % 4 == 3)
		fuzz_word(text, size - 1);
	else
		fuzz_items(text, size - 1, data[0] % 2);
	return 0;
}
