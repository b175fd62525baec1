// SPDX-License-Identifier: GPL-2.0-only
// Tries to write into the state folder of an instance.
#include "ctl/control/state_folder.h"

#include <errno.h>
#include <stdio.h>

#include "ctl/base/err.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

// The folder is made with the first change that is saved.
static int try_folders(const char *instance)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, instance);
	int code = file_try_write(folder);

	if (code == -ENOENT)
		code = file_try_write(WEIR_STATE_FOLDER);
	return code == -ENOENT ? 0 : code;
}

bool state_folder_works(const char *instance, char *text, size_t size)
{
	int code = try_folders(instance);

	if (code)
		snprintf(text, size, "'%s/%s' cannot be written: %s; nothing is saved",
			 WEIR_STATE_FOLDER, instance, err_why(code));
	return !code;
}
