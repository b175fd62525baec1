// SPDX-License-Identifier: GPL-2.0-only
// Reads each item of address lists once: equal items have one number, whatever their spelling.
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/addr_explain.h"
#include "ctl/base/mem.h"
#include "ctl/policy/host.h"
#include "ctl/policy/resolver.h"

static void keep(struct resolver *r, struct item_value *value, const struct prefix *prefixes,
		 size_t n)
{
	value->prefixes = arena_copy(&r->scratch, prefixes, n, sizeof(*prefixes));
	value->n = n;
}

static void read_any(struct resolver *r, struct item_value *value)
{
	static const struct prefix any[] = {{.addr = {.family = 4}}, {.addr = {.family = 6}}};

	keep(r, value, any, ARRAY_SIZE(any));
}

// Queues errors and warnings. Returns the usual spelling of an address.
static const char *read_address(struct resolver *r, const struct ast_item *item,
				struct item_value *value, addr_text spelling)
{
	bool range = item->as_address == AST_RANGE, mapped = false;
	size_t len = strlen(item->word), n = 1;
	struct prefix prefixes[254];
	struct err err = {0};
	int code;

	if (range)
		code = range_parse(item->word, len, prefixes, &n, &err);
	else
		code = prefix_parse(item->word, len, prefixes, &mapped, &err);
	value->broken = code < 0;
	if (code < 0) {
		diag_error(r->diag, item->at, err.hint[0] ? err.hint : NULL, "%s", err.text);
		return item->word;
	}
	keep(r, value, prefixes, n);
	if (range)
		return item->word;
	prefix_format(prefixes, spelling);
	if (mapped)
		diag_warning(r->diag, item->at, NULL, "'%s' is read as %s", item->word, spelling);
	return spelling;
}

static const char *read_host(struct resolver *r, const struct ast_item *item,
			     struct item_value *value)
{
	char problem[160];

	value->kind = VALUE_HOST;
	value->number = INDEX_NONE;
	value->broken = host_problem(item->word, problem, sizeof(problem)); // check has reported it
	if (!value->broken)
		value->number = resolve_add_host(r, item);
	return value->broken ? item->word : r->hosts.at[value->number].name;
}

static const char *read_set(struct resolver *r, const struct ast_item *item,
			    struct item_value *value)
{
	value->kind = VALUE_SET;
	value->number = index_find(&r->ast->set_index, item->word);
	value->broken = value->number == INDEX_NONE;
	return item->word;
}

static const char *read_file(struct resolver *r, const struct ast_item *item,
			     struct item_value *value)
{
	const struct list_file *file = resolve_list(r, item);

	value->kind = VALUE_FILE;
	value->number = (uint32_t)(file - r->lists.at);
	value->broken = file->refused;
	resolve_add_hosts(r, item, value->number);
	return file->key;
}

static const char *read_geo(struct resolver *r, const struct ast_item *item,
			    struct item_value *value)
{
	struct geo geo;
	geo_text name;

	value->kind = VALUE_GEO;
	value->broken = geo_parse(item->geo, item->word, strlen(item->word), &geo,
				  NULL); // reported by check
	if (value->broken)
		return item->word;
	value->number = resolve_add_geo(r, item, &geo);
	return arena_strdup(&r->scratch, geo_format(&geo, name));
}

static const char *read_item(struct resolver *r, const struct ast_item *item,
			     struct item_value *value, addr_text spelling)
{
	static const uint8_t kinds[] = {
		[AST_ANY] = VALUE_PREFIXES,     [AST_SELF] = VALUE_SELF,
		[AST_ADDRESS] = VALUE_PREFIXES, [AST_RANGE] = VALUE_PREFIXES,
		[AST_LABEL] = VALUE_NONE,
	};

	if (item->kind == AST_SET)
		return read_set(r, item, value);
	if (item->kind == AST_FILE || item->kind == AST_URL)
		return read_file(r, item, value);
	if (item->kind == AST_GEO)
		return read_geo(r, item, value);
	if (item->kind == AST_HOST || item->as_address == AST_NAME)
		return read_host(r, item, value);
	value->kind = kinds[item->as_address];
	// An unknown label, which check has reported, or a service in 'to', which has no value.
	value->broken = value->kind == VALUE_NONE;
	if (item->as_address == AST_ANY)
		read_any(r, value);
	else if (value->kind == VALUE_PREFIXES)
		return read_address(r, item, value, spelling);
	return item->word;
}

uint32_t resolve_item(struct resolver *r, struct ast_item *item)
{
	struct item_value value = {0};
	CLEANUP_FREE char *key = NULL;
	const char *spelling;
	addr_text text;
	uint32_t number;

	if (item->value)
		return item->value - 1;
	spelling = read_item(r, item, &value, text);
	key = mem_printf("%d%s", value.kind, spelling);
	number = value.broken ? INDEX_NONE : index_find(&r->item_index, key);
	if (number == INDEX_NONE) {
		number = (uint32_t)r->items.n;
		vec_push(&r->items, value);
		if (!value.broken)
			index_add(&r->item_index, arena_strdup(&r->scratch, key), number);
	}
	item->value = number + 1;
	return number;
}
