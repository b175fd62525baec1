// SPDX-License-Identifier: GPL-2.0-only
// Makes up a whole policy: interfaces, defines, sets, defaults and rules, in any order.
#include <string.h>

#include "gen.h"

/* The words of a comma list, or of the fallback. */
static void split(struct gen *gen, const char *list, const char *fallback, const char ***ret_words,
		  size_t *ret_len)
{
	VEC(const char *) words = {0};

	if (!list)
		list = fallback;
	while (*list) {
		size_t len = strcspn(list, ",");

		*vec_add(&gen->pool, &words) = pool_text(&gen->pool, list, len);
		list += len + (list[len] == ',');
	}
	*ret_words = words.v;
	*ret_len = words.len;
}

static void pick_names(struct gen *gen)
{
	split(gen, gen->options.ifaces, "eth0,eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8,eth9",
	      &gen->ifaces.v, &gen->ifaces.len);
	if (!gen->options.ifaces)
		gen->ifaces.len = rng_chance(&gen->rng, 70) ? rng_between(&gen->rng, 1, 4)
							    : rng_between(&gen->rng, 5, 10);
	split(gen, gen->options.icmp_names,
	      "echo-request,echo-reply,destination-unreachable,time-exceeded,parameter-problem,"
	      "packet-too-big,redirect,router-solicitation,router-advertisement,"
	      "neighbor-solicitation,neighbor-advertisement",
	      &gen->icmp_names.v, &gen->icmp_names.len);
}

/* Statements, each a text, to be written in random order around the rules. */
struct statements {
	struct gen *gen;
	VEC(const char *) texts;
};

static void add(struct statements *statements, const char *text)
{
	*vec_add(&statements->gen->pool, &statements->texts) = text;
}

static void add_interfaces(struct statements *statements)
{
	struct gen *gen = statements->gen;
	struct gen_text text = {.pool = &gen->pool};

	text_put(&text, "interface ");
	for (size_t i = 0; i < gen->ifaces.len; i++) {
		const char *separator = ", ";

		if (rng_chance(&gen->rng, 20))
			separator = rng_chance(&gen->rng, 50) ? "\ninterface " : " ; interface ";
		text_put(&text, "%s%s", i ? separator : "", gen->ifaces.v[i]);
	}
	add(statements, text_done(&text));
}

static void add_defaults(struct statements *statements)
{
	struct gen *gen = statements->gen;
	bool drop = rng_chance(&gen->rng, 55);
	unsigned int at = rng_below(&gen->rng, (unsigned int)gen->ifaces.len);

	if (drop || rng_chance(&gen->rng, 80))
		add(statements, drop ? "default drop" : "default pass");
	if (gen_may(gen, GEN_DEFAULT_ON, 35))
		add(statements, pool_printf(&gen->pool, "default %s on %s", drop ? "pass" : "drop",
					    gen->ifaces.v[at]));
	if (gen_may(gen, GEN_MALFORMED, 20))
		add(statements, rng_chance(&gen->rng, 60) ? "malformed pass" : "malformed drop");
	if (gen_may(gen, GEN_ESSENTIALS, 25))
		add(statements,
		    rng_chance(&gen->rng, 70) ? "essentials filter" : "essentials pass");
}

static void add_fragments(struct statements *statements)
{
	static const char *const words[] = {"filter", "drop", "pass"};
	struct gen *gen = statements->gen;
	const char *word = words[rng_below(&gen->rng, 3)];
	struct gen_numbers protos;

	if (!gen_may(gen, GEN_FRAGMENTS, 45))
		return;
	if (rng_chance(&gen->rng, 70)) {
		gen_protos(gen, &protos);
		add(statements,
		    pool_printf(&gen->pool, "fragments %s proto %s", word, protos.text));
	} else {
		add(statements, pool_printf(&gen->pool, "fragments %s", word));
	}
}

static void add_sets(struct statements *statements)
{
	static const char *const dynamic[] = {"", " max 4096", " max 64k expire 10m",
					      " mask 24/64 expire 1h"};
	struct gen *gen = statements->gen;

	for (size_t i = 0; i < gen->sets.len; i++) {
		const struct gen_set *set = &gen->sets.v[i];
		bool comma = rng_chance(&gen->rng, 20);

		if (set->dynamic)
			add(statements, pool_printf(&gen->pool, "set %s dynamic%s", set->name,
						    dynamic[rng_below(&gen->rng, 4)]));
		else
			add(statements, pool_printf(&gen->pool, "set %s { %s%s }", set->name,
						    set->addrs.text, comma ? "," : ""));
	}
}

static void add_defines(struct statements *statements)
{
	struct gen *gen = statements->gen;

	for (size_t i = 0; i < gen->defines.len; i++) {
		const struct gen_define *define = &gen->defines.v[i];
		const char *text = define->kind == GEN_DEFINE_ADDRS ? define->addrs.text
								    : define->numbers.text;

		add(statements, pool_printf(&gen->pool, "define %s = %s", define->name, text));
	}
}

static void shuffle(struct statements *statements)
{
	for (size_t i = statements->texts.len; i > 1; i--) {
		size_t j = rng_below(&statements->gen->rng, (unsigned int)i);
		const char *text = statements->texts.v[i - 1];

		statements->texts.v[i - 1] = statements->texts.v[j];
		statements->texts.v[j] = text;
	}
}

static void put_statement(struct gen *gen, struct gen_text *text, const char *statement)
{
	static const char *const ends[] = {"\n", "\n\n", "\t# a comment, \"quoted\n", " ; ",
					   "\r\n"};
	unsigned int end = gen_may(gen, GEN_LAYOUT, 25) ? rng_below(&gen->rng, 5) : 0;

	text_put(text, "%s%s", statement, ends[end]);
}

/* The rules in order, with a statement between them now and then. */
static const char *assemble(struct gen *gen, struct statements *statements)
{
	struct gen_text text = {.pool = &gen->pool};
	size_t late = gen->options.with[GEN_LAYOUT] ? statements->texts.len / 4 : 0;

	text_put(&text, "# made by refgen, seed %llu\n", (unsigned long long)gen->options.seed);
	if (rng_chance(&gen->rng, 20))
		text_put(&text, "version 1\n");
	while (statements->texts.len > late)
		put_statement(gen, &text, statements->texts.v[--statements->texts.len]);
	for (size_t i = 0; i < gen->rules.len; i++) {
		if (statements->texts.len && rng_chance(&gen->rng, 20))
			put_statement(gen, &text, statements->texts.v[--statements->texts.len]);
		put_statement(gen, &text, gen->rules.v[i].text);
	}
	while (statements->texts.len)
		put_statement(gen, &text, statements->texts.v[--statements->texts.len]);
	text_put(&text, "\n");
	return text_done(&text);
}

const char *gen_policy(struct gen *gen)
{
	struct statements statements = {.gen = gen};

	pick_names(gen);
	gen_sites(gen);
	gen_number_defines(gen);
	gen_addr_defines(gen);
	gen_sets(gen);
	gen_rules(gen);
	add_interfaces(&statements);
	add_defaults(&statements);
	add_fragments(&statements);
	add_sets(&statements);
	add_defines(&statements);
	shuffle(&statements);
	return assemble(gen, &statements);
}
