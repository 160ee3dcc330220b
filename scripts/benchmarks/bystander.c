/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bystander pingpong N: two processes on one CPU pass a byte to and fro N times; prints the time of
 * one turn in ns. They take precedence over everything else on that CPU.
 *
 * bystander hold FILE: loads a BPF object, attaches all of its programs, prints "ready", and exits
 * when its input ends.
 *
 * bystander account FILE [PID...]: does the same, and finally prints for how many ns the programs
 * ran, by the kernel's account. In an object that has a bit for each process, the PIDs' bits are
 * set.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int pass(int in, int out, long n, int begins)
{
	char c = 'x';

	if (begins && write(out, &c, 1) != 1)
		return -1;
	for (long i = 0; i < n; i++)
		if (read(in, &c, 1) != 1 || ((i + 1 < n || !begins) && write(out, &c, 1) != 1))
			return -1;
	return 0;
}

static int pingpong(long n)
{
	const struct sched_param first = {.sched_priority = 50};
	int to[2], fro[2], status;
	cpu_set_t one;
	double began;
	pid_t child;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &first) ||
	    pipe(to) || pipe(fro) || (child = fork()) < 0) {
		perror("bystander");
		return 1;
	}
	if (child == 0)
		_exit(pass(to[0], fro[1], n, 0) ? 1 : 0);
	began = now_ns();
	if (pass(fro[0], to[1], n, 1) || waitpid(child, &status, 0) < 0 || status) {
		perror("bystander");
		return 1;
	}
	printf("%.1f\n", (now_ns() - began) / (double)n);
	return 0;
}

/* The ns for which all programs of the object have run; -1: not known. */
static long long run_time_ns(struct bpf_object *object)
{
	struct bpf_program *program;
	long long all = 0;

	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = {0};
		__u32 size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			return -1;
		all += (long long)info.run_time_ns;
	}
	return all;
}

/* Sets the bits of the PIDs in `tgids` of least.bpf.c, which is all that .bss contains. */
static int set_bits(struct bpf_object *object, char **pids)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, ".bss");
	__u64 *bits = map ? calloc(1, bpf_map__value_size(map)) : NULL;
	size_t n = map ? bpf_map__value_size(map) / sizeof(*bits) : 0;
	__u32 zero = 0;
	int err = !bits;

	for (; !err && *pids; pids++) {
		unsigned long pid = strtoul(*pids, NULL, 10);

		if (pid / 64 < n)
			bits[pid / 64] |= 1ULL << (pid % 64);
	}
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(map), &zero, bits, BPF_ANY);
	free(bits);
	return err;
}

static int hold(const char *path, int account, char **pids)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	char c;

	/* run time is counted while this descriptor is open */
	if (account && bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		return 1;
	if (!object || bpf_object__load(object) || (*pids && set_bits(object, pids)))
		return 1;
	bpf_object__for_each_program(program, object) if (!bpf_program__attach(program)) return 1;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	if (account)
		printf("%lld\n", run_time_ns(object));
	/* the links are closed with the process */
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

	if (n > 0 && strcmp(argv[1], "pingpong") == 0)
		return pingpong(n);
	if (argc == 3 && strcmp(argv[1], "hold") == 0)
		return hold(argv[2], 0, argv + argc);
	if (argc >= 3 && strcmp(argv[1], "account") == 0)
		return hold(argv[2], 1, argv + 3);
	fputs("usage: bystander pingpong N | hold FILE | account FILE [PID...]\n", stderr);
	return 2;
}
