// SPDX-License-Identifier: GPL-2.0-only
// Loads a library and finds its functions.
#include "ctl/base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"

static int find_all(void *library, const char *file, const struct library_call *calls, size_t n,
		    char *table, struct err *err)
{
	for (size_t c = 0; c < n; c++) {
		void *call = dlsym(library, calls[c].name);

		if (!call)
			return err_stated(err, ENOSYS, "'%s' has no function %s", file,
					  calls[c].name);
		memcpy(table + calls[c].at, &call, sizeof(call));
	}
	return 0;
}

int library_load(const char *file, const struct library_call *calls, size_t n, void *ret,
		 size_t size, struct err *err)
{
	CLEANUP_FREE char *table = mem_zalloc(1, size);
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	int code;

	if (!library)
		return err_stated(err, ENOENT, "cannot load '%s' (%s)", file, dlerror());
	if ((code = find_all(library, file, calls, n, table, err))) {
		dlclose(library);
		return code;
	}
	memcpy(ret, table, size);
	return 0;
}
