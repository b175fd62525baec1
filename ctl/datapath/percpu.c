// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/datapath/percpu.h"

#include <bpf/libbpf.h>

#include "ctl/base/mem.h"

int percpu_count(size_t *ret, struct err *err)
{
	int n = libbpf_num_possible_cpus();

	if (n < 0)
		return err_system(err, -n, "cannot count the CPUs");
	*ret = (size_t)n;
	return 0;
}

int percpu_row(size_t size, void *ret, size_t *ret_n, struct err *err)
{
	int code = percpu_count(ret_n, err);

	if (!code)
		*(void **)ret = mem_zalloc(*ret_n, size);
	return code;
}
