/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of SESSION_COMMAND, and how it is stopped. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_COMMAND_PRIV_H
#define SAFESCOPED_SESSION_COMMAND_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A child that waits until its probes are set, then becomes the program, as the user who ran sudo.
 * Of a command that is NULL there is no process: pid 0, descriptor -1, not ended.
 */
struct command;

/* Finds the program as a shell does, and forks the child, which waits. Prints a line on failure. */
int command__start(char *const *argv, struct command **ret_command);
/* The child becomes the program. Prints a line if it could not. */
int command__go(struct command *c);
/*
 * The program is stopped at its exec, before its first instruction, until this is called, until
 * five seconds have passed, or we end: the kernel lets go of what a tracer traces when that ends,
 * however it does. Where it could not be stopped it runs. Any number of times.
 */
void command__let_go(struct command *c);
/*
 * Lets the program, which is stopped at its exec, go on to its own first instruction, where all its
 * libraries are mapped. True: it is stopped there, for no longer than before. False: it is where it
 * was (it has no dynamic linker, or this processor cannot stop it), or runs.
 */
bool command__load(struct command *c);
/* Whether it is, or is about to be, stopped at its exec. */
bool command__holds(const struct command *c);
/* True once it has ended; collects it then. */
bool command__ended(struct command *c);
/* Frees; a child that still waits ends first, a program goes on. NULL is fine. */
void command__free(struct command *c);

pid_t command__pid(const struct command *c);
/* Readable once it has ended. */
int command__pidfd(const struct command *c);
/* The program's file (-1: it cannot be read) and path. */
int command__file(const struct command *c, const char **ret_path);
/* As wait() gives it; 0 before it has ended. */
int command__status(const struct command *c);
/* CPU time that it used, children that it waited for included; 0 before it has ended. */
uint64_t command__cpu_ns(const struct command *c);

/* ── entry.c ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Whether a process can be stopped at its entry, tried on a child: some virtual machines take the
 * debug registers and do not act on them. Before ptrace is left to the command alone (rights.c).
 */
bool entry__works(void);
/* The process, which is traced by us and stopped, will stop with SIGTRAP at its program's entry.
 * -ENOENT: no dynamic linker works before that; others: this machine cannot do it. */
int entry__set(pid_t pid);
/* No more. The process must be stopped. */
void entry__clear(pid_t pid);

#endif
