/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that do nothing, on the tracepoints that every context switch hits. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int empty_switch(void *ctx)
{
	(void)ctx;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int empty_wakeup(void *ctx)
{
	(void)ctx;
	return 0;
}
