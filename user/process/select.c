/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select: matches processes against the rules. */
#include "select.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/retry.h"
#include "cgroup.h"
#include "proc.h"

static const char *const kinds[SELECT_KINDS] = {
	[SELECT_COMM] = "comm",
	[SELECT_EXE] = "exe",
	[SELECT_USER] = "user",
	[SELECT_CGROUP] = "cgroup",
};

const char *select__kind_name(enum select_kind kind)
{
	return kinds[kind];
}

enum select_kind select__kind(const char *name, size_t len)
{
	unsigned kind = 0;

	while (kind < SELECT_KINDS &&
	       (strlen(kinds[kind]) != len || strncmp(kinds[kind], name, len) != 0))
		kind++;
	return (enum select_kind)kind;
}

static int find_user(const char *text, uid_t *ret_user)
{
	struct passwd *pw = getpwnam(text);
	unsigned long number;
	char *end;

	if (pw) {
		*ret_user = pw->pw_uid;
		return 0;
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || number >= (uid_t)-1)
		return -ENOENT;
	*ret_user = (uid_t)number;
	return 0;
}

/* The bracket that closes the one at `open`; NULL: none does, and it stands for itself. */
static const char *bracket_end(const char *open)
{
	const char *p = open + 1, *first;

	p += *p == '!' || *p == '^';
	/* a bracket that comes first does not close */
	for (first = p; *p && (*p != ']' || p == first); p++) {
		/* "[:alpha:]", "[=a=]", "[.hyphen.]" */
		const char close[] = {p[1], ']', '\0'};
		const char *end =
			*p == '[' && p[1] && strchr(":=.", p[1]) ? strstr(p + 2, close) : NULL;

		if (end)
			p = end + 1;
		else if (*p == '\\' && p[1])
			p++;
	}
	return *p ? p : NULL;
}

/* The minimum length of a name that matches the pattern (fnmatch(3), without flags). */
static size_t least_length(const char *glob)
{
	size_t len = 0;

	for (const char *p = glob; *p; p++) {
		const char *end = *p == '[' ? bracket_end(p) : NULL;

		len += *p != '*';
		if (*p == '\\' && p[1])
			p++;
		else if (end)
			p = end;
	}
	return len;
}

/*
 * False if the pattern matches no path, since all begin with a slash or, if they do not lead to our
 * root, with "(unreachable)" (d_path() in the kernel).
 */
static bool may_match_path(const char *glob)
{
	return strchr("/(*?[\\", *glob) != NULL;
}

int select__add(struct select_rules *rules, enum select_kind kind, const char *text, bool exclude)
{
	struct select_rule rule = {.kind = kind, .exclude = exclude, .glob = text};
	int err = kind == SELECT_USER ? find_user(text, &rule.user) : 0;

	if (err)
		return err;
	if (!*text)
		return -EINVAL;
	if (kind == SELECT_COMM && least_length(text) > SELECT_COMM_MOST)
		return -ENAMETOOLONG;
	if ((kind == SELECT_EXE || kind == SELECT_CGROUP) && !may_match_path(text))
		return -EDOM;
	if (rules->n == SELECT_MAX_RULES)
		return -E2BIG;
	rules->v[rules->n++] = rule;
	return 0;
}

/* The properties of a process that rules test, read on demand. */
struct subject {
	pid_t pid;
	bool known[SELECT_KINDS];
	int err; /* of the last read; 0: it succeeded */
	char comm[17], exe[PATH_MAX];
	struct cgroup cgroup;
	uid_t user;
};

static int read_kind(struct subject *s, enum select_kind kind)
{
	struct proc_stat stat;
	int err;

	switch (kind) {
	case SELECT_COMM:
		err = proc__stat(s->pid, 0, &stat);
		if (!err)
			snprintf(s->comm, sizeof(s->comm), "%.*s", (int)sizeof(stat.comm),
				 stat.comm);
		return err;
	case SELECT_EXE:
		return proc__exe(s->pid, s->exe, sizeof(s->exe));
	case SELECT_USER:
		return proc__account(s->pid, &s->user);
	case SELECT_CGROUP:
		return cgroup__of(s->pid, &s->cgroup);
	case SELECT_KINDS:
		break;
	}
	return -EINVAL;
}

static bool matches(struct subject *s, const struct select_rule *rule)
{
	const char *const texts[SELECT_KINDS] = {
		[SELECT_COMM] = s->comm,
		[SELECT_EXE] = s->exe,
		[SELECT_CGROUP] = s->cgroup.path,
	};

	if (!s->known[rule->kind]) {
		s->known[rule->kind] = true;
		s->err = read_kind(s, rule->kind);
	}
	if (s->err)
		return false;
	return rule->kind == SELECT_USER ? s->user == rule->user
					 : fnmatch(rule->glob, texts[rule->kind], 0) == 0;
}

int select__wants(const struct select_rules *rules, pid_t pid)
{
	struct subject s = {.pid = pid};
	bool has[SELECT_KINDS] = {false}, matched[SELECT_KINDS] = {false};

	for (size_t i = 0; i < rules->n; i++) {
		const struct select_rule *rule = &rules->v[i];
		bool match = matches(&s, rule);

		if (retry__shows_nothing(s.err))
			return s.err;
		if (s.err || (match && rule->exclude))
			return 0;
		has[rule->kind] |= !rule->exclude;
		matched[rule->kind] |= match && !rule->exclude;
	}
	for (unsigned kind = 0; kind < SELECT_KINDS; kind++)
		if (has[kind] && !matched[kind])
			return 0;
	return 1;
}
