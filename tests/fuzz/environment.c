// SPDX-License-Identifier: GPL-2.0-only
// The environment of fuzzed policies: files in memory, names that always resolve to the same
// addresses.
#include "tests/fuzz/environment.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"

static const char services_text[] = "ssh 22/tcp\nhttp 80/tcp www\ndomain 53/tcp\ndomain 53/udp\n"
				    "all 7/tcp\nall 7/udp\nall 7/sctp\nodd 1/tcp\nodd 2/udp\n";

static int give(const char *text, size_t len, char **ret_text, size_t *ret_len)
{
	*ret_text = mem_realloc(NULL, len + 1, 1);
	if (len)
		memcpy(*ret_text, text, len);
	(*ret_text)[len] = '\0';
	*ret_len = len;
	return 0;
}

static int read_file(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	const struct fuzz_environment *in = ctx;

	if (!strcmp(path, "main"))
		return give(in->main, in->main_len, ret_text, ret_len);
	if (!strcmp(path, "services"))
		return give(services_text, strlen(services_text), ret_text, ret_len);
	if (!strcmp(path, "list") || !strcmp(path, "inc"))
		return give(in->other, in->other_len, ret_text, ret_len);
	return err_system(err, ENOENT, "cannot open '%s'", path);
}

static int list_files(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	*ret = mem_zalloc(1, sizeof(**ret));
	(*ret)[0] = mem_strdup("inc");
	*ret_n = 1;
	return 0;
}

// Leaves out the first addresses, as addresses of a private range.
static void leave_out(struct policy_answer *answer, size_t n)
{
	answer->left_out = mem_zalloc(n, sizeof(*answer->left_out));
	for (; answer->n_left_out < n; answer->n_left_out++)
		answer->left_out[answer->n_left_out] = (struct policy_left_out){
			.addr = answer->addrs[answer->n_left_out], .why = "a private address"};
}

// The addresses depend only on the name.
static int resolve(void *ctx, const struct policy_question *questions, size_t n,
		   struct policy_answer *answers, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = questions[i].name;
		uint8_t bytes[16] = {0x20, 1, (uint8_t)name[0]};

		answers[i].v4_missing = name[0] == '6';
		answers[i].stale = name[0] == 's';
		answers[i].error = name[0] == 'e' ? -ENOENT : 0;
		if (answers[i].error)
			continue;
		answers[i].addrs = mem_zalloc(3, sizeof(struct addr));
		answers[i].addrs[answers[i].n++] = addr_from_v6(bytes);
		if (!answers[i].v4_missing)
			answers[i].addrs[answers[i].n++] =
				addr_from_v4((uint32_t)strlen(name) << 24 | 7);
		if (name[0] == 'z')
			answers[i].addrs[answers[i].n++] = addr_from_v4(0);
		if (questions[i].use != POLICY_WHOLE && (name[0] == 'p' || name[0] == 'q'))
			leave_out(&answers[i], name[0] == 'p' ? 1 : answers[i].n);
	}
	return 0;
}

static int addresses(void *ctx, struct addr **ret, size_t *ret_n, struct err *err)
{
	*ret = mem_zalloc(1, sizeof(**ret));
	**ret = addr_from_v4(0x0100000au);
	*ret_n = 1;
	return 0;
}

void fuzz_environment_init(struct fuzz_environment *w, const char *main, size_t main_len,
			   const char *other, size_t other_len)
{
	*w = (struct fuzz_environment){
		.main = main,
		.main_len = main_len,
		.other = other,
		.other_len = other_len,
		.files = {.read = read_file, .glob = list_files, .ctx = w},
		.env = {.ctx = w,
			.services = "services",
			.resolve = resolve,
			.addresses = addresses},
	};
	w->env.files = &w->files;
}
