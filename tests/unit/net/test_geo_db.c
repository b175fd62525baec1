// SPDX-License-Identifier: GPL-2.0-only
// Databases of countries and autonomous systems, made by tests/lab/mmdb.py, whole and damaged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/geo_db.h"

#define WHOLE (1 << 20)

static char folder[64];

static char *path_of(const char *name)
{
	return mem_printf("%s/%s", folder, name);
}

// options: IP_VERSION and RECORD_SIZE, or "".
static void make(const char *name, const char *options, const char *lines)
{
	CLEANUP_FREE char *command =
		mem_printf("/usr/bin/python3 -B tests/lab/mmdb.py %s/%s %s", folder, name, options);
	FILE *f = popen(command, "w");

	assert_non_null(f);
	fputs(lines, f);
	assert_int_equal(pclose(f), 0);
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/weir-geo-XXXXXX");
	return !mkdtemp(folder);
}

static int tear_down(void **state)
{
	geo_db_use(NULL);
	return file_remove_tree(folder, NULL);
}

static struct geo geo(const char *name)
{
	struct geo ret;

	assert_true(geo_parse_name(name, &ret));
	return ret;
}

// The prefixes of one name, separated by blanks; or the sentence of the error.
static const char *find(const char *name)
{
	static struct text line;
	struct geo wanted = geo(name);
	struct geo_ranges found = {0};
	struct err err = {0};
	addr_text text;

	line.len = 0;
	text_add(&line, "");
	if (geo_find(&wanted, 1, &found, &err))
		text_add(&line, err.text);
	vec_each (&found.prefixes, p)
		text_addf(&line, "%s%s", line.len ? " " : "", prefix_format(p, text));
	geo_ranges_free(&found, 1);
	return text_get(&line);
}

static const char lines[] = "192.0.2.0/26 country DE\n192.0.2.64/26 country DE\n"
			    "192.0.2.128/25 country FR\n198.51.100.0/24 country DE\n"
			    "198.51.100.64/26 country US\n"
			    "2001:db8::/33 country DE\n2001:db8:8000::/33 country DE\n"
			    "2001:db8:1::/48 country US\n";

static void neighbours_are_joined_in_each_layout(void **state)
{
	static const char *const sizes[] = {"6 24", "6 28", "6 32"};

	geo_db_use(folder);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make("a.mmdb", sizes[i], lines);
		assert_string_equal(find("country FR"), "192.0.2.128/25");
		assert_string_equal(find("country US"), "198.51.100.64/26 2001:db8:1::/48");
	}
	// Prefixes of another country are left out; the rest is in the fewest prefixes, once for
	// each family.
	assert_non_null(strstr(find("country DE"), "192.0.2.0/25 198.51.100.0/26 198.51.100.128/25 "
						   "2001:db8::/48 2001:db8:2::/47"));
	assert_null(strstr(find("country DE"), "2002:"));
	assert_null(strstr(find("country DE"), "ffff"));
}

static void a_database_of_ipv4_alone(void **state)
{
	geo_db_use(folder);
	make("a.mmdb", "4", "192.0.2.0/24 asn 64500\n192.0.3.0/24 asn 64501\n");
	assert_string_equal(find("asn 64500"), "192.0.2.0/24");
}

static void several_are_read_at_once(void **state)
{
	struct geo wanted[] = {geo("country FR"), geo("asn 64500"), geo("country JP")};
	struct geo_ranges found[3] = {0};

	geo_db_use(folder);
	make("a.mmdb", "", "192.0.2.0/24 asn 64500\n");
	make("b.mmdb", "", lines);
	assert_int_equal(geo_find(wanted, 3, found, NULL), 0);
	assert_int_equal(found[0].prefixes.n, 1);
	assert_int_equal(found[1].prefixes.n, 1);
	assert_int_equal(found[2].prefixes.n, 0);
	assert_non_null(strstr(found[0].source, "/b.mmdb"));
	assert_non_null(strstr(found[1].source, "/a.mmdb"));
	assert_non_null(strstr(found[2].source, "/b.mmdb"));
	geo_ranges_free(found, 3);
}

static void other_publishers_fields(void **state)
{
	geo_db_use(folder);
	make("a.mmdb", "",
	     "192.0.2.0/24 {\"country\": \"DE\", \"asn\": \"AS64500\"}\n"
	     "198.51.100.0/24 {\"country_code\": \"FR\", \"asn\": \"\"}\n");
	assert_string_equal(find("country DE"), "192.0.2.0/24");
	assert_string_equal(find("country FR"), "198.51.100.0/24");
	assert_string_equal(find("asn 64500"), "192.0.2.0/24");
}

static void what_is_missing_is_named(void **state)
{
	CLEANUP_FREE char *file = path_of("a.mmdb");
	CLEANUP_FREE char *wanted = mem_printf("'%s' has no autonomous systems", file);
	CLEANUP_FREE char *none =
		mem_printf("no database of countries or autonomous systems in '%s'", folder);

	geo_db_use(folder);
	assert_string_equal(find("country DE"), none);
	make("a.mmdb", "", lines);
	assert_string_equal(find("asn 64500"), wanted);
	assert_string_equal(find("country JP"), "");
	geo_db_use("/nowhere/a.mmdb");
	assert_string_equal(find("country DE"), "cannot read '/nowhere/a.mmdb': it does not exist");
}

static void write_file(const char *path, const char *text, size_t len)
{
	assert_int_equal(file_replace(path, text, len, 0600, NULL), 0);
}

static void files_of_other_kinds(void **state)
{
	CLEANUP_FREE char *dat = path_of("GeoIP.dat");
	struct geo wanted = geo("country DE");
	struct geo_ranges found = {0};
	struct err err = {0};

	write_file(dat, "\0\0\0\1\2\3", 6);
	geo_db_use(dat);
	assert_true(geo_find(&wanted, 1, &found, &err) < 0);
	assert_non_null(strstr(err.text, "is not a MaxMind database"));
	assert_non_null(strstr(err.hint, "too old"));
}

// Bytes of tree and data changed, one after the other, and the file cut: an answer or an error,
// never a fault or a walk without end. (The library loses memory where the metadata is damaged.)
static void damage_is_found_or_harmless(void **state)
{
	CLEANUP_FREE char *path = path_of("a.mmdb");
	CLEANUP_FREE char *text = NULL;
	struct geo wanted = geo("country DE");
	size_t len, end, refused = 0;

	make("a.mmdb", "", lines);
	geo_db_use(path);
	assert_int_equal(file_read(path, WHOLE, &text, &len, NULL), 0);
	end = (size_t)((char *)memmem(text, len, "MaxMind.com", 11) - text) - 3;
	for (size_t at = 0; at < end; at++) {
		struct geo_ranges found = {0};
		char kept = text[at];

		text[at] = (char)(kept ^ (at % 2 ? 0xff : 0x01));
		write_file(path, text, len);
		refused += geo_find(&wanted, 1, &found, NULL) < 0;
		text[at] = kept;
		geo_ranges_free(&found, 1);
	}
	assert_true(refused > 100);
	for (size_t at = 0; at < end; at += end / 50) {
		struct geo_ranges found = {0};

		write_file(path, text, at);
		assert_true(geo_find(&wanted, 1, &found, NULL) < 0);
		geo_ranges_free(&found, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(neighbours_are_joined_in_each_layout, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_database_of_ipv4_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(several_are_read_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_publishers_fields, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_missing_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_other_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_is_found_or_harmless, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
