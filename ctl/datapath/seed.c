// SPDX-License-Identifier: GPL-2.0-only
// Draws, reads and writes the seed.
#include "ctl/datapath/seed.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/datapath/bpffs.h"

#define SEED_MAX    64
#define WORD_DIGITS 16

static int parse_word(const char *text, __u64 *ret)
{
	uint64_t word = 0;

	for (int i = 0; i < WORD_DIGITS; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, text[i]);

		if (!text[i] || !at)
			return -EINVAL;
		word = word << 4 | (uint64_t)(at - digits);
	}
	*ret = word;
	return 0;
}

static int bad_seed(const char *path, struct err *err)
{
	err_stated(err, EBADMSG, "'%s' is not a valid seed", path);
	return err_hint(
		err,
		"move the file away to generate a new seed; services without 'seed' then get different rings");
}

int seed_read(const char *instance, struct hash_key *ret, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/seed", WEIR_STATE_FOLDER, instance);
	CLEANUP_FREE char *text = NULL;
	struct hash_key key;
	size_t len;
	int code;

	if (!instance[0] || !file_exists(path)) {
		if (getrandom(&key, sizeof(key), 0) != sizeof(key))
			return err_system(err, errno, "cannot generate a seed");
		*ret = key;
		return 0;
	}
	if ((code = file_read(path, SEED_MAX, &text, &len, err)))
		return code;
	if (sum_open(text, &len) || len != 2 * WORD_DIGITS + 1 || text[len - 1] != '\n' ||
	    parse_word(text, &key.word[0]) || parse_word(text + WORD_DIGITS, &key.word[1]))
		return bad_seed(path, err);
	*ret = key;
	return 0;
}

int seed_keep(const char *instance, const struct hash_key *key, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/seed", WEIR_STATE_FOLDER, instance);
	CLEANUP_FREE char *text = mem_printf("%016llx%016llx\n", (unsigned long long)key->word[0],
					     (unsigned long long)key->word[1]);
	struct hash_key kept;

	return file_exists(path) ? seed_read(instance, &kept, err)
				 : sum_write(path, text, strlen(text), err);
}
