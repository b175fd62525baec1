// SPDX-License-Identifier: GPL-2.0-only
// Runs a command in this process.
#include "ctl/cmd/document.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

int document_ask(const struct context *ctx, struct document *d, struct err *err)
{
	struct context own = *ctx;
	struct args args = {.tables = {d->command->options, global_options}};
	CLEANUP_FREE char *text = NULL;
	char *argv[ARRAY_SIZE(d->options)];
	size_t used, n = 0;
	int code;

	for (; n < ARRAY_SIZE(argv) && d->options[n]; n++)
		argv[n] = (char *)d->options[n];
	if (!(code = args_parse(&args, argv, n, false, &used, err))) {
		own.json = own.at_once = true;
		own.out = out_new_document();
		code = d->command->run(&own, &args, err);
		text = out_take_document(own.out);
		out_free(own.out);
	}
	args_free(&args);
	if (text)
		d->json = json_parse(text, strlen(text), NULL, 0);
	// weir status fails where it has alarms; its document is whole.
	if (!d->json || (code && !json_get(d->json, "alarms")))
		return code ? code
			    : err_system(err, 0, "cannot read the document of weir %s",
					 d->command->name);
	err_clear(err);
	return 0;
}
