// SPDX-License-Identifier: GPL-2.0-only
// Writes a service for each virtual server, or why it has none.
#include "ctl/import/keepalived.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/num.h"
#include "ctl/import/keepalived_read.h"

struct server {
	const struct nodes *file;
	const struct node *node;
	const char *port;
	struct text out;
	const char *why; // NULL: the service is complete
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
		if (word[n] < ' ' || word[n] > '~' || word[n] == '"')
			return false;
	return n && n < 256;
}

static void fail(struct server *s, const char *why)
{
	s->why = s->why ? s->why : why;
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

static void put_backend(struct server *s, const struct node *n, bool backup)
{
	const char *weight = node_value(n, "weight", 1);

	if (n->n < 2 || !is_address(n->words[1]) ||
	    (n->n > 2 && strcmp(n->words[2], "0") != 0 && !text_same(n->words[2], s->port)))
		fail(s, "a real server has another port");
	if (weight && !is_number(weight, 0, 65535))
		fail(s, "a weight is not a number up to 65535");
	text_addf(&s->out, "\tbackend %.64s", n->n > 1 ? n->words[1] : "");
	if (weight && !backup)
		text_addf(&s->out, " weight %s", weight);
	text_add(&s->out, backup ? " backup\n" : "\n");
}

static void put_backends(struct server *s)
{
	size_t n = 0;

	vec_each (&s->node->inside, line) {
		bool backup = line->n && !strcmp(line->words[0], "sorry_server");

		if (!backup && (!line->n || strcmp(line->words[0], "real_server")))
			continue;
		put_backend(s, line, backup);
		n++;
	}
	if (!n)
		fail(s, "it has no real server");
}

// ---- checks -------------------------------------------------------------------------------------

static const struct node *find_check(const struct node *server)
{
	vec_each (&server->inside, line)
		if (line->n && (strstr(line->words[0], "_CHECK") || strstr(line->words[0], "_GET")))
			return line;
	return NULL;
}

// False: not a kind that Weir has.
static bool put_http(const struct node *check, struct text *t)
{
	bool tls = !strcmp(check->words[0], "SSL_GET");
	const char *path = NULL, *status = NULL, *host = node_value(check, "virtualhost", 1);

	vec_each (&check->inside, line)
		if (line->n && !strcmp(line->words[0], "url")) {
			path = node_value(line, "path", 1);
			status = node_value(line, "status_code", 1);
			host = host ? host : node_value(line, "virtualhost", 1);
			break;
		}
	if (!is_printable(path) || path[0] != '/')
		return false;
	text_addf(t, "\tcheck %s \"%s\"", tls ? "https" : "http", path);
	if (is_number(status, 100, 599))
		text_addf(t, " expect %s", status);
	if (is_printable(host))
		text_addf(t, " host \"%s\"", host);
	text_add(t, tls ? " insecure" : "");
	return true;
}

static bool put_kind(const struct node *check, struct text *t)
{
	const char *kind = check->words[0];

	if (!strcmp(kind, "HTTP_GET") || !strcmp(kind, "SSL_GET"))
		return put_http(check, t);
	if (strcmp(kind, "TCP_CHECK"))
		return false;
	text_add(t, "\tcheck tcp");
	return true;
}

static void put_times(const struct server *s, const struct node *check, struct text *t)
{
	const char *every = node_value(s->node, "delay_loop", 1);
	const char *port = node_value(check, "connect_port", 1);
	const char *timeout = node_value(check, "connect_timeout", 1);
	uint32_t every_s = 60, timeout_s = 5;

	// The defaults of keepalived.
	if (is_number(every, 1, 3600))
		num_parse_u32(every, strlen(every), 1, 3600, &every_s);
	if (is_number(timeout, 1, 3600))
		num_parse_u32(timeout, strlen(timeout), 1, 3600, &timeout_s);
	if (is_number(port, 1, 65535))
		text_addf(t, " port %s", port);
	text_addf(t, " every %us timeout %us\n", every_s,
		  timeout_s < every_s ? timeout_s : every_s);
}

// A service has one check: all real servers must have the same one.
static void put_checks(struct server *s)
{
	CLEANUP_TEXT struct text first = {0};
	bool same = true;
	size_t n = 0;

	vec_each (&s->node->inside, line) {
		CLEANUP_TEXT struct text t = {0};
		const struct node *check;

		if (!line->n || strcmp(line->words[0], "real_server"))
			continue;
		check = find_check(line);
		if (check && put_kind(check, &t))
			put_times(s, check, &t);
		else if (check)
			text_addf(&t, "\t# line %u: a check that Weir lacks\n", check->line);
		if (!n++)
			text_add(&first, text_get(&t));
		same &= !strcmp(text_get(&first), text_get(&t));
	}
	if (same)
		text_add(&s->out, text_get(&first));
	else
		text_add(&s->out, "\t# the real servers have different checks\n");
}

// ---- services -----------------------------------------------------------------------------------

static void put_options(struct server *s)
{
	const char *kind = node_value(s->node, "lb_kind", 1),
		   *algo = node_value(s->node, "lb_algo", 1);
	const char *protocol = node_value(s->node, "protocol", 1), *mode = NULL, *proto = NULL;

	kind = kind ? kind : node_value(s->node, "lvs_method", 1);
	algo = algo ? algo : node_value(s->node, "lvs_sched", 1);
	protocol = protocol ? protocol : "TCP";
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (text_same(kind, modes[i].word))
			mode = modes[i].weir;
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (text_same(protocol, protocols[i].word))
			proto = protocols[i].weir;
	if (!mode)
		fail(s, "Weir has only direct return (DR) and tunnels (TUN)");
	if (!proto)
		fail(s, "the protocol is unknown");
	text_addf(&s->out, "\tproto %s\n\tmode %s\n", proto, mode);
	if (node_value(s->node, "persistence_timeout", 1) || text_same(algo, "sh"))
		text_add(&s->out, "\thash source\n");
}

static void put_service(const struct nodes *file, const struct node *node, struct text *ret,
			struct import_counts *counts)
{
	struct server s = {.file = file, .node = node};

	put_addresses(&s);
	put_options(&s);
	put_backends(&s);
	put_checks(&s);
	counts->translated += !s.why;
	counts->omitted += s.why != NULL;
	if (s.why)
		text_addf(ret, "# line %u, left to keepalived: %s\n", node->line, s.why);
	else
		text_addf(ret, "service vs%zu {\n%s}\n", counts->translated, text_get(&s.out));
	text_free(&s.out);
}

static int put_services(const struct nodes *file, struct text *ret, struct import_counts *counts,
			struct err *err)
{
	vec_each (file, n)
		if (n->n && !strcmp(n->words[0], "virtual_server"))
			put_service(file, n, ret, counts);
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
