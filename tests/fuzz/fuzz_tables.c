// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: the tables of names of the system, /etc/hosts and /etc/services. The first byte
// selects one.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/net/dns_channel.h"
#include "ctl/net/dns_hosts.h"
#include "ctl/policy/services.h"
#include "tests/fuzz/fuzz.h"

// Every name in the table is found, with all its addresses; except "x..", which no query can
// contain.
static void check_hosts(const struct hosts *h)
{
	for (size_t i = 0, n; i < h->entries.n; i += n) {
		const char *name = h->entries.at[i].name, *dot = strrchr(name, '.');
		const struct hosts_entry *found;

		n = 1;
		if (dot && !dot[1])
			continue;
		found = hosts_find(h, name, &n);
		fuzz_check(found == &h->entries.at[i] && n && i + n <= h->entries.n);
		fuzz_check(found->addr.family == 4 || found->addr.family == 6);
	}
}

static void fuzz_hosts(const uint8_t *text, size_t size)
{
	static int fd = -1;
	static char path[32];
	struct hosts h = {0};

	if (fd < 0) {
		fd = memfd_create("hosts", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, text, size, 0) == (ssize_t)size);
	hosts_read(path, &h);
	check_hosts(&h);
	hosts_cleanup(&h);
}

static void fuzz_services(const uint8_t *bytes, size_t size)
{
	struct services s = {0};
	char *text = fuzz_copy(bytes, size);
	uint16_t port = 0;

	services_read(&s, text, size);
	free(text);
	for (size_t i = 0; i < s.index.size; i++) {
		const char *slash =
			s.index.buckets[i].name ? strrchr(s.index.buckets[i].name, '/') : NULL;
		char *name;

		if (!slash || strlen(s.index.buckets[i].name) > 100) // not a name of a port
			continue;
		name = strndup(s.index.buckets[i].name, (size_t)(slash - s.index.buckets[i].name));
		fuzz_check(services_find(&s, name, slash + 1, &port) == 0);
		fuzz_check(port == s.index.buckets[i].number);
		free(name);
	}
	services_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 2)
		fuzz_services(data + 1, size - 1);
	else
		fuzz_hosts(data + 1, size - 1);
	return 0;
}
