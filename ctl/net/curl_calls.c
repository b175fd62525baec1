// SPDX-License-Identifier: GPL-2.0-only
// Loads libcurl and finds its functions.
#include "ctl/net/curl_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "ctl/base/mem.h"

#define LIBRARY "libcurl.so.4"

static const struct {
	const char *name;
	size_t at; // in struct curl_calls
} calls[] = {
#define X(call) {"curl_" #call, offsetof(struct curl_calls, call)},
	CURL_CALLS(X)
#undef X
};

static struct curl_calls found;

const struct curl_calls *curl_calls(void)
{
	return &found;
}

static int find_all(void *library, struct curl_calls *ret, struct err *err)
{
	for (size_t c = 0; c < ARRAY_SIZE(calls); c++) {
		void *call = dlsym(library, calls[c].name);

		if (!call)
			return err_system(err, ENOSYS, "'%s' has no function %s", LIBRARY,
					  calls[c].name);
		memcpy((char *)ret + calls[c].at, &call, sizeof(call));
	}
	return 0;
}

int curl_calls_load(struct err *err)
{
	static void *library;
	struct curl_calls all;
	int code;

	if (library)
		return 0;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_system(err, ENOENT, "cannot load libcurl (%s)", dlerror());
	if ((code = find_all(library, &all, err))) {
		dlclose(TAKE_PTR(library));
		return code;
	}
	found = all;
	return 0;
}
