// SPDX-License-Identifier: GPL-2.0-only
// Shared by the files of the parser: the position in the tokens, and lists before they have a type.
#ifndef REF_PARSE_H
#define REF_PARSE_H

#include "lex.h"
#include "policy.h"

struct define {
	const char *name;
	unsigned int line;
	size_t at; /* first token of its list */
	bool expanding;
};

struct parser {
	struct pool *pool;
	struct ref_policy *policy;
	const char *file;
	const char *dir;
	struct token *tokens;
	size_t at;
	VEC(struct define) defines;
	VEC(struct addresses *) lists; /* every one, to be finished at the end */
	bool fragments_seen;
	bool failed;
	char *msg;
	size_t msg_size;
};

/* An item of a list with its defines expanded: a word or the name of a set. */
struct item {
	bool is_set;
	bool negative;
	const char *text;
	unsigned int line;
};

struct list {
	bool negated;
	VEC(struct item) items;
};

/* Everything here returns false after a failure; the first one's text is kept. */
bool parse_fail(struct parser *parser, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

const struct token *parse_peek(const struct parser *parser);
const struct token *parse_take(struct parser *parser);
bool parse_at_end(const struct parser *parser);
bool parse_is(const struct parser *parser, const char *keyword);
bool parse_accept(struct parser *parser, const char *keyword);
bool parse_accept_kind(struct parser *parser, enum token_kind kind);
bool parse_word(struct parser *parser, const char **ret_word);

/* values.c: single words. */
bool parse_number(struct parser *parser, uint64_t max, uint64_t *ret_number);
bool parse_span(struct parser *parser, uint32_t max, struct span *ret_span);
bool parse_rate(struct parser *parser);
bool parse_count(struct parser *parser);
bool parse_time(struct parser *parser);
bool parse_percent(struct parser *parser);
bool parse_mask(struct parser *parser, unsigned int ret_len[2]);
bool parse_flags(struct parser *parser, struct rule *rule);

/* parse_list.c: lists and what they become. */
bool parse_list(struct parser *parser, struct list *ret_list);

/* A define's items join the list as if written there; alone: they are the whole list. */
bool list_put_define(struct parser *parser, const struct token *token, bool negative, bool alone,
		     struct list *list);
bool list_addresses(struct parser *parser, const struct list *list,
		    struct direction *ret_direction);
bool list_ports(struct parser *parser, const struct list *list, unsigned int protos,
		struct ports *ret_ports);
bool list_macs(struct parser *parser, const struct list *list, struct field *ret_field);
bool list_types(struct parser *parser, const struct list *list, const struct field *proto,
		struct types *ret_types);
bool list_ifaces(struct parser *parser, const struct list *list, struct ifaces *ret_ifaces);

enum number_kind { NUMBER_PROTO, NUMBER_CODE, NUMBER_VLAN, NUMBER_DSCP, NUMBER_ETHERTYPE };
bool parse_field(struct parser *parser, enum number_kind kind, struct field *ret_field);

/* parse_set.c */
bool parse_set(struct parser *parser, struct set *set);
bool set_add_word(struct parser *parser, const char *word, unsigned int line, bool negative,
		  struct addresses *addresses);
bool set_add_ref(struct parser *parser, const struct item *item, struct addresses *addresses);

/* parse_rule.c */
bool parse_rule(struct parser *parser);

#endif
