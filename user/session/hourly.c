/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hourly: limits the log to one line per hour about a program that is started again and again. */
#include <ctype.h>
#include <string.h>

#include "process/proc.h"
#include "session_priv.h"

/* FNV-1a */
#define HASH_FIRST 0xcbf29ce484222325ULL
#define HASH_PRIME 0x100000001b3ULL

static uint64_t hash_byte(uint64_t hash, unsigned char byte)
{
	return (hash ^ byte) * HASH_PRIME;
}

/* Skips numbers: a pid, an address, a size. */
static uint64_t hash_reason(uint64_t hash, const char *why)
{
	while (*why) {
		if (isdigit((unsigned char)*why))
			why += strspn(why, "0123456789abcdefx");
		else
			hash = hash_byte(hash, (unsigned char)*why++);
	}
	return hash;
}

/*
 * Hashes path and inode but not the device: a layered file system has another device in each
 * container that runs the same image. For a process that has ended only the reason is left.
 */
static uint64_t hash_of(pid_t pid, const char *why)
{
	uint64_t hash = HASH_FIRST, ino = 0;
	char path[PATH_MAX];
	uint32_t dev;

	if (proc__exe(pid, path, sizeof(path)) == 0)
		for (const char *c = path; *c; c++)
			hash = hash_byte(hash, (unsigned char)*c);
	if (program__exe(pid, &ino, &dev))
		for (unsigned i = 0; i < sizeof(ino); i++)
			hash = hash_byte(hash, (unsigned char)(ino >> 8 * i));
	return hash_reason(hash, why);
}

bool hourly__is_new(struct hourly *hourly, pid_t pid, const char *why, uint64_t now)
{
	uint64_t hash = hash_of(pid, why);

	if (!hourly->began_ns || now - hourly->began_ns >= HOURLY_NS)
		*hourly = (struct hourly){.began_ns = now};
	for (size_t i = 0; i < hourly->n; i++)
		if (hourly->v[i] == hash)
			return false;
	if (hourly->n < HOURLY_MAX) {
		hourly->v[hourly->n++] = hash;
		return true;
	}
	if (!hourly->full)
		log_warn("too many programs are left out or only sampled: not reporting further "
			 "ones for up to an hour");
	hourly->full = true;
	return false;
}

void hourly__report(struct session *s, pid_t pid, const char *what, const char *why)
{
	if (s->opts->kind == SESSION_PIDS ||
	    hourly__is_new(&s->hourly, pid, why, time__monotonic_ns()))
		log_warn("pid %d: %s: %s", pid, what, why);
	else
		log_verbose("pid %d: %s: %s", pid, what, why);
}
