// SPDX-License-Identifier: GPL-2.0-only
// Makes a c-ares channel from our options: servers, files, timeouts.
#include "ctl/net/dns_channel.h"

#define CARES_NO_DEPRECATED // newer c-ares would rather be asked in another way
#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/lines.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"

enum {
	TRIES = 3,
	// More than a burst of answers to all names in flight; the kernel cuts it to rmem_max.
	SOCKET_BYTES = 1024 * 1024,
};

// Where systemd-resolved lists the servers that its stub asks.
static const char system_conf[] = "/etc/resolv.conf";
static const char resolved_conf[] = "/run/systemd/resolve/resolv.conf";

struct servers {
	VEC(struct ares_addr_port_node) of;
};

static void servers_cleanup(struct servers *s)
{
	vec_free(&s->of);
}

static bool split_port(const char *item, size_t len, size_t *ret_addr_len, uint16_t *ret_port)
{
	const char *colon = memrchr(item, ':', len);
	size_t addr_len = colon ? (size_t)(colon - item) : len;

	*ret_addr_len = addr_len;
	if (!colon)
		return true;
	return !num_parse_u16(colon + 1, len - addr_len - 1, 1, UINT16_MAX, ret_port);
}

// "[ADDR]" or "[ADDR]:PORT"
static bool parse_bracketed(const char *item, size_t len, struct addr *ret, uint16_t *ret_port)
{
	const char *close = memchr(item, ']', len);
	size_t inner = close ? (size_t)(close - item) - 1 : 0, rest = len - inner - 2;

	if (!close || addr_parse(item + 1, inner, ret, NULL))
		return false;
	return !rest ||
	       (close[1] == ':' && !num_parse_u16(close + 2, rest - 1, 1, UINT16_MAX, ret_port));
}

// A word with two colons is an IPv6 address without a port.
static bool parse_server(const char *item, size_t len, struct addr *ret, uint16_t *ret_port)
{
	const char *colon = memchr(item, ':', len);
	size_t addr_len = len;

	*ret_port = 53;
	if (len && item[0] == '[')
		return parse_bracketed(item, len, ret, ret_port);
	if (!colon || colon == memrchr(item, ':', len))
		if (!split_port(item, len, &addr_len, ret_port))
			return false;
	return !addr_parse(item, addr_len, ret, NULL);
}

static void add_server(struct servers *s, const struct addr *a, uint16_t port)
{
	struct ares_addr_port_node node = {.udp_port = port, .tcp_port = port};

	node.family = a->family == 4 ? AF_INET : AF_INET6;
	memcpy(&node.addr, a->bytes, a->family == 4 ? 4 : 16);
	vec_push(&s->of, node);
}

static int parse_servers(const char *list, struct servers *ret, struct err *err)
{
	for (const char *item = list, *end; item; item = *end ? end + 1 : NULL) {
		struct addr addr;
		uint16_t port;

		end = strchrnul(item, ',');
		if (!parse_server(item, (size_t)(end - item), &addr, &port)) {
			err_input(err, "'%.*s' is not the address of a name server",
				  (int)(end - item), item);
			return err_hint(err, "write 192.0.2.53, 192.0.2.53:5353, 2001:db8::53 or "
					     "[2001:db8::53]:5353, with commas between them");
		}
		add_server(ret, &addr, port);
	}
	return 0;
}

static int set_servers(ares_channel channel, const char *list, struct err *err)
{
	CLEANUP(servers_cleanup) struct servers s = {0};
	int status, code = parse_servers(list, &s, err);

	if (code)
		return code;
	for (size_t i = 0; i + 1 < s.of.n; i++)
		s.of.at[i].next = &s.of.at[i + 1];
	status = ares_set_servers_ports(channel, s.of.at);
	if (status)
		return err_stated(err, EIO, "cannot set the name servers '%s' (c-ares: %s)", list,
				  ares_strerror(status));
	return 0;
}

// c-ares takes a file that it cannot read for an empty one.
static int set_resolv_conf(const char *path, struct ares_options *o, int *mask, struct err *err)
{
	if (access(path, R_OK))
		return err_system(err, errno, "cannot read '%s'", path);
#ifdef ARES_OPT_RESOLVCONF
	o->resolvconf_path = mem_strdup(path); // the caller's to free: c-ares takes a copy
	*mask |= ARES_OPT_RESOLVCONF;
	return 0;
#else
	return err_stated(err, ENOTSUP, "cannot use '%s': this c-ares reads /etc/resolv.conf only",
			  path);
#endif
}

static int open_channel(const struct dns_options *options, const struct dns_channel_setup *setup,
			ares_channel *ret, struct err *err)
{
	struct ares_options o = {
		.flags = setup->flags,
		.timeout = setup->try_ms,
		.tries = TRIES,
		.sock_state_cb = setup->watch,
		.sock_state_cb_data = setup->watch_ctx,
		.socket_send_buffer_size = SOCKET_BYTES,
		.socket_receive_buffer_size = SOCKET_BYTES,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB |
		   ARES_OPT_SOCK_SNDBUF | ARES_OPT_SOCK_RCVBUF;
	int code = 0, status;

	if (options->resolv_conf)
		code = set_resolv_conf(options->resolv_conf, &o, &mask, err);
	if (code)
		return code;
	status = ares_init_options(ret, &o, mask);
	free(o.resolvconf_path);
	if (status)
		return err_stated(err, status == ARES_ENOMEM ? ENOMEM : EIO,
				  "cannot start the resolver (c-ares: %s)", ares_strerror(status));
	return 0;
}

int dns_channel_open(const struct dns_options *options, const struct dns_channel_setup *setup,
		     ares_channel *ret, struct err *err)
{
	ares_channel channel = NULL;
	int code;

	if (ares_library_init(ARES_LIB_INIT_ALL))
		return err_system(err, ENOMEM, "cannot start the resolver");
	code = open_channel(options, setup, &channel, err);
	if (code || (options->servers && (code = set_servers(channel, options->servers, err)))) {
		if (channel)
			ares_destroy(channel);
		ares_library_cleanup();
		return code;
	}
	*ret = channel;
	return 0;
}

void dns_channel_close(ares_channel channel)
{
	if (!channel)
		return;
	ares_destroy(channel);
	ares_library_cleanup();
}

static void add_addrs(ares_channel channel, struct addr **addrs, size_t *n)
{
	struct ares_addr_port_node *list = NULL;

	if (ares_get_servers_ports(channel, &list))
		return;
	for (const struct ares_addr_port_node *node = list; node; node = node->next) {
		uint8_t bytes[16];

		memcpy(bytes, &node->addr, sizeof(bytes));
		*addrs = mem_realloc(*addrs, *n + 1, sizeof(**addrs));
		if (node->family == AF_INET)
			(*addrs)[(*n)++] = addr_from_v4(node->addr.addr4.s_addr);
		else
			(*addrs)[(*n)++] = addr_from_v6(bytes);
	}
	ares_free_data(list);
}

size_t dns_channel_count_servers(ares_channel channel)
{
	CLEANUP_FREE struct addr *addrs = NULL;
	size_t n = 0;

	add_addrs(channel, &addrs, &n);
	return n;
}

static int collect_servers(const struct dns_options *options, struct addr **addrs, size_t *n,
			   struct err *err)
{
	const struct dns_channel_setup setup = {.try_ms = 1000};
	ares_channel channel = NULL;
	int code = dns_channel_open(options, &setup, &channel, err);

	if (code)
		return code;
	add_addrs(channel, addrs, n);
	dns_channel_close(channel);
	return 0;
}

// 127.0.0.53 and .54 (systemd-resolved.service(8))
static bool is_resolved_stub(const struct addr *a)
{
	static const uint8_t stub[] = {127, 0, 0};

	return a->family == 4 && !memcmp(a->bytes, stub, sizeof(stub)) &&
	       (a->bytes[3] == 53 || a->bytes[3] == 54);
}

static bool any_stub(const struct addr *addrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_resolved_stub(&addrs[i]))
			return true;
	return false;
}

static int compare_addr(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static size_t sort_unique(struct addr *addrs, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(addrs, n, sizeof(*addrs), compare_addr);
	for (size_t i = 0; i < n; i++)
		if (!kept || addr_compare(&addrs[kept - 1], &addrs[i]))
			addrs[kept++] = addrs[i];
	return kept;
}

// c-ares takes a file that it cannot open for one that is not there.
static int check_readable(const char *path, struct err *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno != ENOENT ? err_system(err, errno, "cannot open '%s'", path) : 0;
}

int dns_servers(const struct dns_options *options, struct addr **ret, size_t *ret_n,
		struct err *err)
{
	static const struct dns_options none, stub_servers = {.resolv_conf = resolved_conf};
	CLEANUP_FREE struct addr *addrs = NULL;
	size_t n = 0;
	int code = check_readable(
		options && options->resolv_conf ? options->resolv_conf : system_conf, err);

	if (code)
		return code;
	if ((code = collect_servers(options ? options : &none, &addrs, &n, err)))
		return code;
	if (any_stub(addrs, n) && file_exists(resolved_conf))
		code = collect_servers(&stub_servers, &addrs, &n, err);
	if (code)
		return code;
	*ret_n = sort_unique(addrs, n);
	*ret = TAKE_PTR(addrs);
	return 0;
}

// ---- the search list ----------------------------------------------------------------------------

// Reads the search list of resolv.conf(5). c-ares has it too, but its later versions (1.34) do not
// return it.
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
