// SPDX-License-Identifier: GPL-2.0-only
// Reads the search list of resolv.conf(5). c-ares has it too, but its later versions (1.34) do not
// return it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/lines.h"
#include "ctl/net/dns_parts.h"

enum { CONF_BYTES_MAX = 1024 * 1024 };

// The words of the line's rest replace the list. "." is the root, in which each name is looked up
// anyway.
static void take_words(struct lines *l, struct dns_domains *d)
{
	dns_domains_free(d);
	for (struct word w; (w = lines_word(l)).len;) {
		if (w.at[w.len - 1] == '.')
			w.len--;
		if (w.len)
			vec_push(&d->of, mem_strndup(w.at, w.len));
	}
}

// The last line with a list counts, as in libc. false: no line has one.
static bool read_file(const char *path, struct dns_domains *d)
{
	CLEANUP_FREE char *text = NULL;
	bool found = false;
	struct lines l;
	size_t len;

	if (file_read(path, CONF_BYTES_MAX, &text, &len, NULL))
		return false;
	for (l = lines_of(text, len); lines_next(&l);) {
		struct word w = lines_word(&l);

		if (!word_is(w, "search") && !word_is(w, "domain"))
			continue;
		take_words(&l, d);
		found = true;
	}
	return found;
}

// The domain of this host, if its name has one.
static void of_this_host(struct dns_domains *d)
{
	char name[256] = "", *dot;

	if (!gethostname(name, sizeof(name) - 1) && (dot = strchr(name, '.')) && dot[1])
		vec_push(&d->of, mem_strdup(dot + 1));
}

void dns_domains_read(const char *resolv_conf, struct dns_domains *ret)
{
	const char *set = getenv("LOCALDOMAIN");
	struct dns_domains d = {0};

	if (set) {
		struct lines l = lines_of(set, strlen(set));

		if (lines_next(&l))
			take_words(&l, &d);
	} else if (!read_file(resolv_conf ? resolv_conf : "/etc/resolv.conf", &d)) {
		of_this_host(&d);
	}
	*ret = d;
}

void dns_domains_free(struct dns_domains *d)
{
	for (size_t i = 0; i < d->of.n; i++)
		free(d->of.at[i]);
	vec_free(&d->of);
}
