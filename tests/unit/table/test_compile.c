// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/compile.c: the tables against a plain evaluation, configuration, errors.
#include "tests/unit/table/random.h"

#include "common/counters.h"
#include "common/matrix.h"

#include <errno.h>

static const struct compile_options options = {.seed = 0x0123456789abcdefull, .hz = 250};

static struct image *compiled(struct made *m)
{
	struct image *i = NULL;
	int result = compile(&m->r, &options, m->diag, &i);

	if (result)
		diag_print(m->diag, stdout, false);
	assert_int_equal(result, 0);
	return i;
}

// ---- random policies ----------------------------------------------------------------------------

static void run_random(const struct random_shape *shape, uint64_t seed, int policies, int packets)
{
	uint64_t s = seed;
	size_t matched = 0;

	for (int n = 0; n < policies; n++) {
		struct made m;
		struct image *i;

		random_policy(&m, &s, shape);
		i = compiled(&m);
		for (int k = 0; k < packets; k++) {
			struct made_packet p = random_packet(&s, &m.r);

			matched += made_check(&m.r, i, &p);
		}
		image_free(i);
		made_free(&m);
	}
	print_message("%d verdicts, %zu with a match\n", policies * packets, matched);
	assert_true(matched > (size_t)(policies * packets) / 10);
}

static void test_random_small(void **state)
{
	run_random(&(struct random_shape){4, 3, 6, 2}, 1, 800, 250);
}

static void test_random_middle(void **state)
{
	run_random(&(struct random_shape){100, 8, 40, 3}, 2, 60, 1500);
}

static void test_random_many_hosts(void **state)
{
	run_random(&(struct random_shape){30, 6, 1500, 2}, 3, 12, 1500);
}

static void test_random_4096(void **state)
{
	run_random(&(struct random_shape){4096, 20, 30, 4}, 4, 4, 800);
}

// ---- configuration ------------------------------------------------------------------------------

static void test_empty(void **state)
{
	struct image_packet p = {.family = 4};
	uint64_t words[1];
	struct image *i;
	struct made m;

	made_init(&m, 0, 0);
	i = compiled(&m);
	assert_int_equal(i->matrix[MATRIX_RULES].words, 0);
	assert_int_equal(i->n_rules + i->tables.n, 0);
	assert_int_equal(image_bytes(i), 0);
	assert_true(image_match(i, MATRIX_RULES, &p, words));
	image_free(i);
	made_free(&m);
}

static void test_default_and_fragments(void **state)
{
	struct image *i;
	struct made m;

	made_init(&m, 0, 0);
	m.r.interfaces = made_alloc(&m, 63, sizeof(*m.r.interfaces));
	m.r.n_interfaces = 63;
	m.r.interfaces[0].default_drop = m.r.interfaces[62].default_drop = true;
	m.r.essentials_filter = true;
	i = compiled(&m);
	assert_int_equal(i->config.default_drop, 1ull << 1 | 1ull << 63);
	assert_int_equal(i->config.fragments, 0);
	assert_int_equal(i->config.essentials_filter, 1);
	image_free(i);
	m.r.default_drop = true;
	m.r.fragments[17] = TREAT_DROP;
	m.r.fragments[255] = TREAT_PASS;
	i = compiled(&m);
	// A default is not for interfaces that the policy does not name.
	assert_int_equal(i->config.default_drop, 1ull << 1 | 1ull << 63);
	assert_int_equal(i->config.named, 1);
	assert_int_equal(i->config.fragments, 1);
	assert_int_equal(i->config.treatment[16], TREAT_FILTER);
	assert_int_equal(i->config.treatment[17], TREAT_DROP);
	assert_int_equal(i->config.treatment[255], TREAT_PASS);
	assert_int_equal(i->config.treatment6, TREAT_DROP);
	image_free(i);
	m.r.fragments[17] = TREAT_FILTER; // other packets pass
	i = compiled(&m);
	assert_int_equal(i->config.treatment6, TREAT_PASS);
	image_free(i);
	m.r.fragments[255] = TREAT_FILTER;
	i = compiled(&m);
	assert_int_equal(i->config.fragments, 0);
	assert_int_equal(i->config.treatment6, TREAT_FILTER);
	image_free(i);
	m.r.n_interfaces = 0;
	i = compiled(&m);
	assert_int_equal(i->config.default_drop, 1);
	assert_int_equal(i->config.named, 0);
	image_free(i);
	made_free(&m);
}

static void test_conditions(void **state)
{
	struct resolved_rule *from;
	const struct policy_rule *to;
	struct image *i;
	struct made m;

	made_init(&m, 1, 0);
	from = m.r.rules;
	from->length = (struct resolved_span){true, 100, 65534};
	from->ttl = (struct resolved_span){true, 1, 255};
	from->dscp.given = true;
	from->dscp.bits[0] = 1ull << 63;
	from->established.given = true;
	from->probability.given = true;
	from->probability.share = UINT32_MAX;
	from->from = (struct resolved_address){RESOLVED_DYNAMIC, 3};
	from->to = (struct resolved_address){RESOLVED_DYNAMIC, 7};
	from->log = (struct resolved_log){true, 1, 1000, 9999};
	from->add = (struct resolved_add){true, true, 5, 600000};
	i = compiled(&m);
	to = i->rules;
	assert_int_equal(to->flags, RULE_LENGTH | RULE_TTL | RULE_DSCP | RULE_ESTABLISHED |
					    RULE_PROBABILITY | RULE_FROM_SET | RULE_TO_SET |
					    RULE_LOG | RULE_ADD | RULE_ADD_DEST);
	assert_int_equal(to->length_last, 65534);
	assert_int_equal(to->ttl_last, 255);
	assert_int_equal(to->dscp, 1ull << 63);
	assert_int_equal(to->probability, UINT32_MAX);
	assert_int_equal(to->from_set * 16 + to->to_set, 3 * 16 + 7);
	assert_int_equal(to->log_interval, 250);
	assert_int_equal(to->log_snap, 256);
	assert_int_equal(to->add_set, 5);
	assert_int_equal(to->add_ticks, 150000);
	assert_true(i->config.conditions);
	image_free(i);
	made_free(&m);
}

// 100 % always holds: as the only condition it is left out.
static void test_certain_probability(void **state)
{
	struct image *i;
	struct made m;

	made_init(&m, 1, 0);
	m.r.rules->probability.given = true;
	m.r.rules->probability.share = 1ull << 32;
	i = compiled(&m);
	assert_int_equal(i->rules->flags, 0);
	assert_false(i->config.conditions);
	image_free(i);
	made_free(&m);
}

static struct resolved_limit limit_of(uint8_t per, uint32_t max)
{
	return (struct resolved_limit){.given = true,
				       .count = 10,
				       .period_ms = 1000,
				       .burst = 10,
				       .per = per,
				       .mask4 = 24,
				       .mask6 = 56,
				       .max = max};
}

// Length of packet or frame, and its end: merged packets are longer than a length field can tell.
static void test_lengths(void **state)
{
	struct resolved_rule *rules;
	struct image *i;
	struct made m;

	made_init(&m, 3, 0);
	rules = m.r.rules;
	rules[0].length = rules[1].length = (struct resolved_span){true, 1281, 65535};
	rules[2].length = (struct resolved_span){true, 0, 65534};
	rules[1].ethertype.given = true;
	i = compiled(&m);
	assert_int_equal(i->rules[0].flags, RULE_LENGTH);
	assert_int_equal(i->rules[1].flags, RULE_LENGTH | RULE_FRAME);
	assert_int_equal(i->rules[0].length_first, 1281);
	assert_int_equal(i->rules[0].length_last, UINT32_MAX);
	assert_int_equal(i->rules[2].length_last, 65534);
	image_free(i);
	made_free(&m);
}

static void test_limits(void **state)
{
	struct image *i;
	struct made m;

	made_init(&m, 5, 0);
	m.r.rules[0].limit = limit_of(PER_SOURCE, 100);
	m.r.rules[1].limit = limit_of(PER_RULE, 0);
	m.r.rules[1].limit.under = m.r.rules[1].limit.bits = true;
	m.r.rules[2].limit = limit_of(PER_SOURCE, 100);
	m.r.rules[2].impossible = true;
	m.r.rules[3].limit = limit_of(PER_DESTINATION, 8);
	m.r.rules[4].limit = limit_of(PER_RULE, 0);
	i = compiled(&m);
	assert_int_equal(i->rules[0].meter_lines, 32);
	assert_int_equal(i->rules[0].meter, 0);
	assert_int_equal(i->rules[0].per, PER_SOURCE);
	assert_int_equal(i->rules[0].mask4 * 256 + i->rules[0].mask6, 24 * 256 + 56);
	assert_int_equal(i->rules[1].flags, RULE_LIMIT | RULE_UNDER | RULE_BITS);
	assert_int_equal(i->rules[1].meter, 0);
	assert_int_equal(i->rules[2].flags, 0);
	assert_int_equal(i->rules[3].meter, 1);
	assert_int_equal(i->rules[3].meter_lines, 2);
	assert_int_equal(i->rules[4].meter, 1);
	assert_int_equal(i->n_meters, 2);
	assert_int_equal(i->n_tables, 2);
	assert_int_equal(i->n_bucket_lines, 34);
	image_free(i);
	made_free(&m);
}

static void test_actions(void **state)
{
	static const uint8_t redirect[] = {0, 1, 0};
	const char *device[] = {"eth1", "eth2", "eth1"};
	struct image *i;
	struct made m;

	made_init(&m, 5, 0);
	m.r.n_always = 2;
	for (int n = 0; n < 3; n++) {
		m.r.rules[n].action = ACTION_REDIRECT;
		m.r.rules[n].redirect = device[n];
	}
	m.r.rules[3].action = ACTION_PASS;
	m.r.rules[4].action = ACTION_REJECT;
	m.r.rules[4].impossible = true;
	i = compiled(&m);
	for (int n = 0; n < 3; n++) {
		assert_int_equal(i->rules[n].redirect, redirect[n]);
		assert_string_equal(i->about[n].redirect, device[n]);
	}
	assert_null(i->about[3].redirect);
	assert_string_equal(i->about[3].identity, "rule 3");
	assert_string_equal(i->about[3].place, "made.weir:4");
	assert_int_equal(i->config.always, 2);
	assert_int_equal(i->config.rules, 5);
	assert_true(i->config.redirects);
	assert_false(i->config.rejects); // the only one is impossible
	assert_false(i->config.conditions);
	image_free(i);
	m.r.rules[3].action = ACTION_COUNT;
	i = compiled(&m);
	assert_true(i->config.conditions);
	image_free(i);
	made_free(&m);
}

// Without fields all rules match but impossible ones; neighbour discovery matches no rule.
static void test_no_fields(void **state)
{
	struct made_packet p = {.family = 6, .proto = 58, .has_l4 = true, .type = 135};
	struct image *i;
	struct made m;

	made_init(&m, 130, 0);
	p.ethertype = 0x86dd;
	i = compiled(&m);
	assert_true(made_check(&m.r, i, &p));
	p.neighbour = true;
	assert_false(made_check(&m.r, i, &p));
	image_free(i);
	m.r.rules[64].impossible = true;
	i = compiled(&m);
	assert_int_equal(matrix_row(&i->tables, MATRIX_RULES, POLICY_ROW_ALL)[matrix_place(1, 3)],
			 ~1ull);
	p.neighbour = false;
	assert_true(made_check(&m.r, i, &p));
	p.family = 0;
	assert_false(made_check(&m.r, i, &p));
	image_free(i);
	made_free(&m);
}

// ---- errors -------------------------------------------------------------------------------------

static char *refused(struct made *m, const struct compile_options *o)
{
	struct image *i = NULL;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(compile(&m->r, o, m->diag, &i), -EINVAL);
	assert_null(i);
	diag_print(m->diag, f, false);
	fclose(f);
	return text;
}

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static void add_vip(struct made *m, const char *name, uint32_t addr)
{
	struct resolved_addresses *s = made_addresses(m, name, 1, 0);

	((struct resolved_prefix4 *)s->v4)[0] = made_prefix4(addr, 32, true);
}

// One rule with the port; two services at two addresses, the second with any port and udp.
static void make_services(struct made *m, struct resolved_service services[2])
{
	made_init(m, 1, 2);
	m->r.rules[0].dport = made_range(m, 443, 443);
	m->r.rules[0].proto = (struct resolved_bits){.given = true, .bits = {1 << 6}};
	add_vip(m, "one", 0xc0000201);
	add_vip(m, "two", 0xc0000202);
	for (uint32_t i = 0; i < 2; i++)
		services[i] = (struct resolved_service){
			.name = i ? "two" : "one", .at = made_at(m, 7 + 2 * i), .vip = i};
	services[0].proto = (struct resolved_bits){.given = true, .bits = {1 << 6}};
	services[0].ports = made_range(m, 80, 443);
	services[1].proto = (struct resolved_bits){.given = true, .bits = {1 << 17}};
	services[1].any_port = true;
	m->r.services = services;
	m->r.n_services = 2;
}

static uint64_t bits_of(const struct image *i, uint8_t last, uint32_t port, uint32_t proto)
{
	struct image_packet p = {
		.family = 4,
		.source = {198, 51, 100, 1},
		.destination = {192, 0, 2, last},
		.index = {[FIELD_DPORT] = port, [FIELD_PROTO] = proto},
	};
	uint64_t rule, services;

	assert_true(image_match(i, MATRIX_RULES, &p, &rule));
	assert_true(image_match(i, MATRIX_MEMBERS, &p, &services));
	return rule | services << 1;
}

// Bit 0: the rule; 1 and 2: the services. Returns the short program's action for the rule.
static int32_t reason_of(struct made *m, unsigned rule)
{
	struct image *i = compiled(m);
	CLEANUP_FREE uint8_t *written = mem_zalloc(i->tables.n, 1);
	size_t at = i->tables.constant[MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS)].value;
	const struct matrix_action *actions = (const struct matrix_action *)(written + at);
	int32_t reason;

	image_write_tables(i, written);
	reason = actions[rule / 64 * 64 + matrix_action_place(1ull << rule % 64)].reason;
	image_free(i);
	return reason;
}

// The short program decides a limit if that is the only condition, and the next step is known.
static void test_actions_of_limits(void **state)
{
	struct resolved_service services[2];
	struct made m;

	made_init(&m, 65, 0);
	m.r.n_rules = 64;
	m.r.rules[63].limit = m.r.rules[1].limit = limit_of(PER_SOURCE, 100);
	m.r.rules[63].action = ACTION_DROP;
	m.r.rules[1].established.given = true;
	assert_int_equal(reason_of(&m, 1), MATRIX_ASK);
	assert_true(reason_of(&m, 63) < MATRIX_ASK);
	assert_int_equal(matrix_limit_rule(reason_of(&m, 63)), 63);
	assert_int_equal(matrix_limit_reason(reason_of(&m, 63)), REASON_DROP_RULE);
	m.r.n_rules = 65;
	assert_int_equal(reason_of(&m, 63), MATRIX_ASK);
	made_free(&m);

	make_services(&m, services);
	m.r.rules[0].limit = limit_of(PER_SOURCE, 100);
	assert_int_equal(reason_of(&m, 0), MATRIX_ASK);
	made_free(&m);
}

static void test_services(void **state)
{
	struct resolved_service services[2];
	struct image *i = NULL;
	struct made m;

	make_services(&m, services);
	assert_int_equal(compile(&m.r, &options, m.diag, &i), 0);
	assert_int_equal(i->config.rules, 1);
	assert_int_equal(i->config.services, 2);
	assert_int_equal(bits_of(i, 1, 443, 6), 3);
	assert_int_equal(bits_of(i, 1, 80, 6), 2);
	assert_int_equal(bits_of(i, 1, 79, 6), 0);
	assert_int_equal(bits_of(i, 1, 80, 17), 0);
	assert_int_equal(bits_of(i, 3, 80, 6), 0);
	assert_int_equal(bits_of(i, 2, 9, 17), 4);
	// Later fragments have no port: they belong to the service, but match no rule with ports.
	assert_int_equal(bits_of(i, 1, POLICY_NO_PORT, 2 * 256 + 6), 2);
	assert_int_equal(bits_of(i, 2, POLICY_NO_PORT, 2 * 256 + 17), 4);
	image_free(i);
	made_free(&m);
}

static void test_services_refused(void **state)
{
	struct resolved_service services[2];
	struct made m;
	char *text;

	make_services(&m, services);
	services[1].check =
		(struct resolved_check){.at = services[1].at, .kind = CHECK_EXEC, .via_path = true};
	text = refused(&m, &options);
	assert_says(text, "made.weir:9:1: error: service 'two': a check by a program cannot go "
			  "'via path'");
	free(text);
	made_free(&m);
}

static void test_burst_refused(void **state)
{
	struct made m;
	char *text;

	made_init(&m, 2, 0);
	m.r.rules[1].limit = limit_of(PER_SOURCE, 100);
	m.r.rules[1].limit.burst = 1000000000000;
	text = refused(&m, &options);
	assert_says(text, "made.weir:2:1: error: a burst of 1000000000000 takes too long");
	assert_says(text, "write burst 175921860444"); // 2^42 jiffies of 4 ms, ten a second
	free(text);
	made_free(&m);
}

static struct resolved_limit connections_of(uint64_t count)
{
	return (struct resolved_limit){.given = true,
				       .connections = true,
				       .count = count,
				       .per = PER_SOURCE,
				       .mask4 = 24,
				       .mask6 = 64,
				       .max = 1000};
}

// Each rule has a number of its own, and the ports know which rules count them.
static void test_connections(void **state)
{
	struct image *i;
	struct made m;

	made_init(&m, 3, 0);
	m.r.rules[0].limit = connections_of(50);
	m.r.rules[0].dport = made_range(&m, 22, 23);
	m.r.rules[2].limit = connections_of(3);
	m.r.rules[2].limit.per = PER_SOURCE_PORT;
	m.r.rules[2].limit.under = true;
	i = compiled(&m);
	assert_int_equal(i->n_connection_rules, 2);
	assert_int_equal(i->connection_sources, 2000);
	assert_int_equal(i->rules[0].flags, RULE_CONNECTIONS);
	assert_int_equal(i->rules[0].connections, 50);
	assert_int_equal(i->rules[2].flags, RULE_CONNECTIONS | RULE_UNDER);
	assert_int_equal(i->rules[2].connection_rule, 1);
	assert_int_equal(i->connection_rules[0].mask4, 24);
	assert_false(i->connection_rules[0].ports);
	assert_true(i->connection_rules[1].ports);
	assert_int_equal(i->rules_of_port[21], 2);
	assert_int_equal(i->rules_of_port[22], 3);
	assert_int_equal(i->rules_of_port[23], 3);
	assert_int_equal(i->rules_of_port[65535], 2);
	image_free(i);
	made_free(&m);
}

static void test_connections_refused(void **state)
{
	struct made m;
	char *text;

	made_init(&m, CONNECTION_RULES + 1, 0);
	for (int n = 0; n <= CONNECTION_RULES; n++)
		m.r.rules[n].limit = connections_of(5);
	text = refused(&m, &options);
	assert_says(text, "made.weir:33:1: error: more than 32 rules with a number of connections");
	free(text);
	m.r.n_rules = 2;
	m.r.rules[0].limit.max = m.r.rules[1].limit.max = 16777216;
	text = refused(&m, &options);
	assert_says(text, "made.weir:2:1: error: the tables of connections of all rules take too "
			  "much memory");
	free(text);
	m.r.n_rules = CONNECTION_RULES + 1;
	made_free(&m);
}

static void test_redirects_refused(void **state)
{
	char device[65][16];
	struct made m;
	char *text;

	made_init(&m, 65, 0);
	for (int n = 0; n < 65; n++) {
		snprintf(device[n], sizeof(device[n]), "eth%d", n);
		m.r.rules[n].action = ACTION_REDIRECT;
		m.r.rules[n].redirect = device[n];
	}
	text = refused(&m, &options);
	assert_says(text, "made.weir:65:1: error: rules redirect to more than 64 interfaces");
	free(text);
	made_free(&m);
}

static void spread(struct made *m, const char *name, size_t n, uint64_t *s)
{
	struct resolved_addresses *a = made_addresses(m, name, n, 0);

	a->at = made_at(m, 100 + m->r.n_addresses);
	for (size_t k = 0; k < n; k++)
		((struct resolved_prefix4 *)a->v4)[k] = made_prefix4(
			(uint32_t)(unit_random(s) >> 32), 12 + unit_below(s, 12), true);
	made_sort(a);
}

// 20 small sets, and two large ones that overlap with all: the large ones are named, largest first.
static void test_too_many_rows(void **state)
{
	struct compile_options o = options;
	uint64_t s = 77;
	struct made m;
	char *text;

	made_init(&m, 30, 30);
	for (size_t n = 0; n < 20; n++)
		spread(&m, "small", 60, &s);
	spread(&m, "large", 800, &s);
	spread(&m, NULL, 4000, &s);
	for (size_t n = 0; n < 22; n++)
		m.r.rules[4 + n].from = made_set(n);
	m.r.rules[2].impossible = true;
	m.r.rules[2].from = made_set(21);
	o.rows_max = 80 * 8;
	text = refused(&m, &o);
	// The list (a set without a name) is rule 4 + 21's, in line 26; its place is line 121.
	assert_says(text, "made.weir:26:1: error: the rules have too many different combinations "
			  "(more than 640 B); most come from the list at made.weir:122:1 (");
	assert_says(text, "'@large' (");
	free(text);
	o.rows_max = 2 * 8; // not even the small fields
	m.r.rules[0].dport = made_range(&m, 1, 1);
	text = refused(&m, &o);
	assert_says(text, "made.weir:1:1: error: the rules have too many different combinations");
	free(text);
	made_free(&m);
}

static void test_rows_just_fit(void **state)
{
	struct compile_options o = options;
	uint64_t s = 78;
	struct image *i = NULL;
	struct made m;
	size_t rows;

	made_init(&m, 70, 70);
	for (size_t n = 0; n < 70; n++) {
		spread(&m, "set", 20, &s);
		m.r.rules[n].from = made_set(n);
	}
	i = compiled(&m);
	rows = i->matrix[MATRIX_RULES].n_rows;
	image_free(TAKE_PTR(i));
	o.rows_max = rows * matrix_row_words(2) * 8;
	assert_int_equal(compile(&m.r, &o, m.diag, &i), 0);
	assert_int_equal(i->matrix[MATRIX_RULES].n_rows, rows);
	image_free(i);
	o.rows_max--;
	free(refused(&m, &o));
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_small),
		cmocka_unit_test(test_random_middle),
		cmocka_unit_test(test_random_many_hosts),
		cmocka_unit_test(test_random_4096),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_default_and_fragments),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_certain_probability),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_actions_of_limits),
		cmocka_unit_test(test_no_fields),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_services_refused),
		cmocka_unit_test(test_burst_refused),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_connections_refused),
		cmocka_unit_test(test_redirects_refused),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_rows_just_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
