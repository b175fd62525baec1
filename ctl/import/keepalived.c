// SPDX-License-Identifier: GPL-2.0-only
// Writes a service for each virtual server, or why it has none.
#include "ctl/import/keepalived.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "ctl/base/addr.h"
#include "ctl/base/num.h"
#include "ctl/import/keepalived_read.h"

struct server {
	const struct nodes *file;
	const struct node *node;
	const char *port;
	struct text out;
	const char *why; // NULL: there is a service
	bool lacking;    // it has something that the service lacks
};

static const struct {
	const char *word, *weir;
} modes[] = {{"DR", "dr"}, {"TUN", "ipip"}},
  protocols[] = {{"TCP", "tcp"}, {"UDP", "udp"}, {"SCTP", "sctp"}};

static bool is_number(const char *word, uint32_t least, uint32_t most)
{
	uint32_t n;

	return word && !num_parse_u32(word, strlen(word), least, most, &n);
}

static bool is_address(const char *word)
{
	struct addr a;

	return word && !addr_parse(word, strlen(word), &a, NULL);
}

// Can it be a string of a policy?
static bool is_printable(const char *word)
{
	size_t n = 0;

	for (; word && word[n]; n++)
		if (word[n] < ' ' || word[n] > '~' || strchr("\"\\", word[n]))
			return false;
	return n && n < 256;
}

static void fail(struct server *s, const char *why)
{
	s->why = s->why ? s->why : why;
}

// Lines whose meaning is in other files, options of the command line, or definitions.
static bool is_indirect(const struct node *n)
{
	return n->n && (!strncmp(n->words[0], "include", 7) || n->words[0][0] == '@' ||
			n->words[0][0] == '~');
}

static void check_lines(struct server *s, const struct node *n)
{
	if (is_indirect(n))
		fail(s, "it has an include, a line for some instances (@) or a sequence (~)");
	for (size_t i = 0; i < n->n; i++)
		if (strchr(n->words[i], '$'))
			fail(s, "it has a definition ($)");
	if (n->cut)
		fail(s, "a line has too many words");
	vec_each (&n->inside, line)
		check_lines(s, line);
}

// ---- addresses ----------------------------------------------------------------------------------

static const struct node *find_group(const struct server *s, const char *name)
{
	vec_each (s->file, n)
		if (n->n > 1 && !strcmp(n->words[0], "virtual_server_group") &&
		    text_same(n->words[1], name))
			return n;
	return NULL;
}

static void put_group(struct server *s, const struct node *group)
{
	if (group)
		check_lines(s, group);
	if (!group || !group->inside.n) {
		fail(s, "the group has no address");
		return;
	}
	for (size_t i = 0; i < group->inside.n; i++) {
		const struct node *line = &group->inside.at[i];

		s->port = i ? s->port : line->words[1];
		if (!is_address(line->words[0]) || !text_same(line->words[1], s->port))
			fail(s, "the group has ranges, marks or several ports");
		text_addf(&s->out, "%s%.64s", i ? ", " : "", line->words[0]);
	}
}

static void put_addresses(struct server *s)
{
	const struct node *n = s->node;
	const char *first = n->n > 1 ? n->words[1] : "";

	text_add(&s->out, "\tvip ");
	if (!strcmp(first, "group")) {
		put_group(s, find_group(s, n->words[2]));
	} else {
		s->port = n->words[2];
		text_addf(&s->out, "%.64s", first);
		if (!is_address(first))
			fail(s, "firewall marks cannot be services");
	}
	if (!is_number(s->port, 1, 65535))
		fail(s, "a service needs a port");
	text_addf(&s->out, "\n\tport %.8s\n", s->port ? s->port : "");
}

// A weight of the virtual server is for real servers without one.
static void put_backend(struct server *s, const struct node *n, bool backup)
{
	const struct node *weight = node_last(n, "weight", NULL);

	weight = weight ? weight : node_last(s->node, "weight", NULL);
	weight = backup ? NULL : weight;
	if (n->n < 2 || !is_address(n->words[1]) ||
	    (n->n > 2 && strcmp(n->words[2], "0") != 0 && !text_same(n->words[2], s->port)))
		fail(s, "a real server has another port");
	if (weight && (weight->n > 2 || weight->block))
		fail(s, "a line has more than a weight");
	if (weight && !is_number(weight->words[1], 0, 65535))
		fail(s, "a weight is not a number up to 65535");
	if (node_last(n, "lvs_method", "lb_kind"))
		fail(s, "a real server has its own method");
	text_addf(&s->out, "\tbackend %.64s", n->n > 1 ? n->words[1] : "");
	if (weight)
		text_addf(&s->out, " weight %.8s", weight->words[1] ? weight->words[1] : "");
	text_add(&s->out, backup ? " backup\n" : "\n");
}

static bool is_real(const struct node *line)
{
	return line->n && !strcmp(line->words[0], "real_server");
}

// The last of several sorry servers counts.
static void put_backends(struct server *s)
{
	const struct node *sorry = node_last(s->node, "sorry_server", NULL);

	vec_each (&s->node->inside, line)
		if (line == sorry || is_real(line))
			put_backend(s, line, line == sorry);
	if (!node_count(s->node, "real_server"))
		fail(s, "it has no real server");
	if (node_last(s->node, "sorry_server_lvs_method", NULL))
		fail(s, "the sorry server has its own method");
}

// ---- checks -------------------------------------------------------------------------------------

// A check of a real server, and the places of its options.
struct check {
	const struct node *node, *real, *virtual;
};

static const struct node *find_check(const struct node *real, size_t *ret_n)
{
	const struct node *check = NULL;

	*ret_n = 0;
	vec_each (&real->inside, line)
		if (line->n &&
		    (strstr(line->words[0], "_CHECK") || strstr(line->words[0], "_GET"))) {
			check = line;
			++*ret_n;
		}
	return check;
}

// The nearest line with the keyword.
static const struct node *find_option(const struct check *c, const char *keyword)
{
	const struct node *n = node_last(c->node, keyword, NULL);

	n = n ? n : node_last(c->real, keyword, NULL);
	return n ? n : node_last(c->virtual, keyword, NULL);
}

static bool has_only(const struct node *n, const char *const *words, size_t count)
{
	vec_each (&n->inside, line) {
		bool known = false;

		for (size_t i = 0; i < count; i++)
			known |= line->n && !strcmp(line->words[0], words[i]);
		if (!known)
			return false;
	}
	return true;
}

// "status_code 200 301-303"
static bool put_status(const struct node *url, struct text *t)
{
	const struct node *status = node_last(url, "status_code", NULL);

	if (!status)
		return true; // 200-299, as in Weir
	if (status->n < 2 || node_count(url, "status_code") > 1)
		return false;
	for (size_t i = 1; i < status->n; i++) {
		uint32_t first, last;

		if (num_parse_span(status->words[i], 599, &first, &last) || first < 100 ||
		    last < first)
			return false;
		text_addf(t, "%s%s", i > 1 ? ", " : " expect ", status->words[i]);
	}
	return true;
}

// False: not what Weir can check.
static bool put_http(const struct check *c, struct text *t)
{
	static const char *const words[] = {"path", "status_code", "virtualhost"};
	bool tls = !strcmp(c->node->words[0], "SSL_GET");
	const struct node *url = node_last(c->node, "url", NULL), *path, *host;

	if (!url || node_count(c->node, "url") > 1 || !has_only(url, words, ARRAY_SIZE(words)))
		return false;
	path = node_last(url, "path", NULL);
	if (!path || path->n != 2 || !is_printable(path->words[1]) || path->words[1][0] != '/')
		return false;
	host = node_last(url, "virtualhost", NULL);
	host = host ? host : find_option(c, "virtualhost");
	text_addf(t, "\tcheck %s \"%s\"", tls ? "https" : "http", path->words[1]);
	if (!put_status(url, t) || (host && !is_printable(host->words[1])))
		return false;
	if (host)
		text_addf(t, " host \"%s\"", host->words[1]);
	text_add(t, tls ? " insecure" : "");
	return true;
}

static bool put_kind(const struct check *c, struct text *t)
{
	static const char *const words[] = {"connect_timeout", "connect_port",
					    "delay_loop",      "retry",
					    "nb_get_retry",    "delay_before_retry",
					    "warmup",          "alpha",
					    "virtualhost",     "http_protocol",
					    "fast_recovery",   "enable_sni",
					    "tls_compliant",   "url"};
	const char *kind = c->node->words[0];

	if (!has_only(c->node, words, ARRAY_SIZE(words)))
		return false;
	if (!strcmp(kind, "HTTP_GET") || !strcmp(kind, "SSL_GET"))
		return put_http(c, t);
	text_add(t, "\tcheck tcp");
	return !strcmp(kind, "TCP_CHECK");
}

// Seconds, perhaps with a fraction: "2.5".
static bool read_time(const struct node *n, uint32_t otherwise_ms, uint32_t *ret_ms)
{
	const char *word = n ? n->words[1] : NULL;
	size_t whole = word ? strcspn(word, ".") : 0, digits = 0;
	uint32_t s, part = 0;

	*ret_ms = otherwise_ms;
	if (!n)
		return true;
	if (!word || num_parse_u32(word, whole, 0, 3600, &s))
		return false;
	if (word[whole]) {
		digits = strlen(word + whole + 1);
		if (!digits || digits > 6 || strspn(word + whole + 1, "0123456789") != digits)
			return false;
		for (size_t i = 0; i < 3; i++)
			part = part * 10 + (i < digits ? (uint32_t)(word[whole + 1 + i] - '0') : 0);
	}
	*ret_ms = s * 1000 + part;
	return *ret_ms >= 100 && *ret_ms <= 3600000;
}

static void put_time(struct text *t, const char *word, uint32_t ms)
{
	text_addf(t, " %s %u%s", word, ms % 1000 ? ms : ms / 1000, ms % 1000 ? "ms" : "s");
}

// False: a time or the port cannot be read. The defaults are keepalived's.
static bool put_times(const struct check *c, struct text *t)
{
	const struct node *port = node_last(c->node, "connect_port", NULL);
	uint32_t every, timeout;

	if (!read_time(find_option(c, "delay_loop"), 60000, &every) ||
	    !read_time(find_option(c, "connect_timeout"), 5000, &timeout) ||
	    (port && !is_number(port->words[1], 1, 65535)))
		return false;
	if (port)
		text_addf(t, " port %s", port->words[1]);
	put_time(t, "every", every);
	put_time(t, "timeout", timeout < every ? timeout : every);
	text_add(t, "\n");
	return true;
}

static void put_check(struct server *s, const struct node *real, struct text *ret)
{
	CLEANUP_TEXT struct text t = {0};
	struct check c = {.real = real, .virtual = s->node};
	size_t n;

	c.node = find_check(real, &n);
	if (!n)
		return;
	if (n == 1 && put_kind(&c, &t) && put_times(&c, &t)) {
		text_add(ret, text_get(&t));
		return;
	}
	text_addf(ret, "\t# line %u: a check that Weir lacks\n", c.node->line);
	s->lacking = true;
}

// A service has one check: all real servers must have the same one.
static void put_checks(struct server *s)
{
	CLEANUP_TEXT struct text first = {0};
	const struct node *sorry = node_last(s->node, "sorry_server", NULL);
	bool same = true;
	size_t n = 0;

	vec_each (&s->node->inside, line) {
		CLEANUP_TEXT struct text t = {0};

		if (!is_real(line))
			continue;
		put_check(s, line, &t);
		if (!n++)
			text_add(&first, text_get(&t));
		same &= text_same(text_get(&first), text_get(&t));
	}
	if (!same) {
		text_add(&s->out, "\t# the real servers have different checks\n");
		s->lacking = true;
		return;
	}
	text_add(&s->out, text_get(&first));
	if (sorry && !strncmp(text_get(&first), "\tcheck", 6)) {
		text_addf(&s->out, "\t# line %u: in Weir, the sorry server is checked too\n",
			  sorry->line);
		s->lacking = true;
	}
}

static void put_quorum(struct server *s)
{
	const struct node *quorum = node_last(s->node, "quorum", NULL);

	if (!quorum || text_same(quorum->words[1], "1"))
		return;
	text_addf(&s->out, "\t# line %u: a quorum, which Weir lacks\n", quorum->line);
	s->lacking = true;
}

// ---- services -----------------------------------------------------------------------------------

// A tunnel of another type than IP in IP, or NULL: not a mode of Weir.
static const char *find_mode(struct server *s)
{
	const struct node *kind = node_last(s->node, "lb_kind", "lvs_method");

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!kind || !text_same(kind->words[1], modes[i].word))
			continue;
		if (kind->n > 2 && !(kind->n == 4 && !strcmp(kind->words[2], "type") &&
				     !strcmp(kind->words[3], "ipip")))
			fail(s, "Weir's tunnels are IP in IP, without options");
		return modes[i].weir;
	}
	return NULL;
}

// Without the flag for ports, the schedulers sh and mh take only the source address.
static bool has_source_hash(struct server *s)
{
	const struct node *algo = node_last(s->node, "lb_algo", "lvs_sched");
	const char *word = algo && algo->words[1] ? algo->words[1] : "";

	if (node_last(s->node, "persistence_granularity", NULL))
		fail(s, "persistence is per address, not per network (persistence_granularity)");
	if (node_last(s->node, "persistence_timeout", NULL))
		return true;
	if (!strcmp(word, "sh"))
		return !node_last(s->node, "sh-port", "flag-2");
	return !strcmp(word, "mh") && !node_last(s->node, "mh-port", "flag-2");
}

static void put_options(struct server *s)
{
	const struct node *protocol = node_last(s->node, "protocol", NULL);
	const char *mode = find_mode(s), *proto = protocol ? NULL : "tcp";

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocol && protocol->n > 1 &&
		    !strcasecmp(protocol->words[1], protocols[i].word))
			proto = protocols[i].weir;
	if (!mode)
		fail(s, "lb_kind NAT is not translated: write a service in mode nat");
	if (!proto)
		fail(s, "the protocol is unknown");
	text_addf(&s->out, "\tproto %s\n\tmode %s\n", proto ? proto : "", mode ? mode : "");
	if (has_source_hash(s))
		text_add(&s->out, "\thash source\n");
}

static void put_service(const struct nodes *file, const struct node *node, struct text *ret,
			struct import_counts *counts)
{
	struct server s = {.file = file, .node = node};

	check_lines(&s, node);
	put_addresses(&s);
	put_options(&s);
	put_backends(&s);
	put_checks(&s);
	put_quorum(&s);
	counts->translated += !s.why;
	counts->omitted += s.why != NULL;
	counts->lacking += !s.why && s.lacking;
	if (s.why)
		text_addf(ret, "# line %u, left to keepalived: %s\n", node->line, s.why);
	else
		text_addf(ret, "service vs%zu {\n%s}\n", counts->translated, text_get(&s.out));
	text_free(&s.out);
}

static bool ends_open(const struct node *n)
{
	const char *last = n->words[n->n - 1];
	size_t len = strlen(last);

	return n->cut || (len && last[len - 1] == '\\');
}

static int put_services(const struct nodes *file, struct text *ret, struct import_counts *counts,
			struct err *err)
{
	vec_each (file, n) {
		if (n->n && n->words[0][0] == '$' && ends_open(n))
			return err_input(err, "line %u: a definition of several lines", n->line);
		if (n->n && !strcmp(n->words[0], "virtual_server")) {
			put_service(file, n, ret, counts);
		} else if (is_indirect(n) ||
			   (n->n == 1 && n->words[0][0] == '$' && !strchr(n->words[0], '='))) {
			text_addf(ret,
				  "# line %u, left to keepalived: it may have virtual servers\n",
				  n->line);
			counts->omitted++;
		}
	}
	if (counts->translated + counts->omitted > 1024)
		return err_input(err, "a policy has at most 1024 services");
	return ret->len ? 0 : err_input(err, "there is no virtual_server");
}

int import_keepalived(const char *text, size_t len, const char *source, struct text *ret,
		      struct import_counts *counts, struct err *err)
{
	CLEANUP_TEXT struct text services = {0};
	struct import_counts seen = {0};
	struct nodes file = {0};
	struct arena arena = {0};
	int code = nodes_read(text, len, &arena, &file, err);

	code = code ? code : put_services(&file, &services, &seen, err);
	nodes_free(&file);
	arena_free(&arena);
	if (code)
		return code;
	text_add(ret, "# from ");
	text_add_shown(ret, source, strcspn(source, "\n"));
	text_addf(ret, ", by weir import: %zu %s, %zu left to keepalived\ndefault pass\n%s",
		  seen.translated, num_plural(seen.translated, "service", "services"), seen.omitted,
		  text_get(&services));
	*counts = seen;
	return 0;
}
