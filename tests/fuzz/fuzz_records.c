// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: the file of the overlay.
#include "ctl/control/records.h"
#include "tests/fuzz/fuzz.h"

// A file that is accepted must print to a text that parses to the same store.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct records r, again;
	struct err err = {0};
	char *first, *second;
	size_t len, len_again;
	int result;

	result = records_parse(text, size, &r, &err);
	free(text);
	if (result < 0) {
		fuzz_check(err.text[0] && !r.list.n && !r.owners.n);
		return 0;
	}
	first = records_print(&r, &len);
	fuzz_check(records_parse(first, len, &again, &err) == 0);
	second = records_print(&again, &len_again);
	fuzz_check(len == len_again && !memcmp(first, second, len) && again.list.n == r.list.n);
	records_free(&r);
	records_free(&again);
	free(first);
	free(second);
	return 0;
}
