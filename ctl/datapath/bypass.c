// SPDX-License-Identifier: GPL-2.0-only
// Writes the end of a bypass for each interface, and the latest end, which programs test first.
#include "ctl/datapath/bypass.h"

static uint64_t read_word(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static uint64_t latest_end(const struct instance *i)
{
	uint64_t latest = 0;

	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		uint64_t end = read_word(&i->knobs->bypass_until[n]);

		latest = end > latest ? end : latest;
	}
	return latest;
}

static void raise_latest(const struct instance *i, uint64_t until)
{
	__u64 seen = read_word(&i->knobs->bypass);

	while (until > seen && !__atomic_compare_exchange_n(&i->knobs->bypass, &seen, until, false,
							    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

// Ends are read after `seen`: if another process has raised it meanwhile, the exchange fails; if it
// has not, it reads the ends after this process.
static void update_latest(const struct instance *i)
{
	__u64 seen, latest;

	do {
		seen = read_word(&i->knobs->bypass);
		latest = latest_end(i);
	} while (!__atomic_compare_exchange_n(&i->knobs->bypass, &seen, latest, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

void bypass_set(const struct instance *i, uint32_t number, uint64_t until)
{
	// Raised before the ends and lowered after them, so that no program misses an end that is
	// set.
	raise_latest(i, until);
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!number || n == number)
			__atomic_store_n(&i->knobs->bypass_until[n], until, __ATOMIC_SEQ_CST);
	update_latest(i);
}
