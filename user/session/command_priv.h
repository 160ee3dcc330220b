/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of SESSION_COMMAND, and how it is stopped. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_COMMAND_PRIV_H
#define SAFESCOPED_SESSION_COMMAND_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A child that waits until its probes are set, then becomes the program, as the user who ran sudo.
 * The functions accept NULL: no process, with pid 0, descriptor -1, not ended.
 */
struct command;

/* Finds the program as a shell does, and forks the child, which waits. Prints a line on failure. */
int command__start(char *const *argv, struct command **ret_command);
/* Makes the child become the program. Prints a line if it cannot. */
int command__go(struct command *c);
/*
 * The program is stopped at its exec, before its first instruction, until this is called, five
 * seconds have passed, or this process ends: the kernel releases tracees when their tracer ends,
 * however it ends. If the program could not be stopped, it runs. May be called any number of times.
 */
void command__let_go(struct command *c);
/*
 * Lets the program, which is stopped at its exec, run up to its own first instruction, where all
 * its libraries are mapped. True: it is stopped there; the time limit is the same. False: it is
 * where it was (it has no dynamic linker, or this processor cannot stop it), or runs.
 */
bool command__load(struct command *c);
/* True if it is, or is about to be, stopped at its exec. */
bool command__holds(const struct command *c);
/* True once it has ended; collects it then. */
bool command__ended(struct command *c);
/* Frees the command. A child that still waits ends first, a program goes on. NULL is fine. */
void command__free(struct command *c);

pid_t command__pid(const struct command *c);
/* Readable once it has ended. */
int command__pidfd(const struct command *c);
/* Returns the program's file (-1: it cannot be read) and sets *ret_path to its path. */
int command__file(const struct command *c, const char **ret_path);
/* Status as from wait(); 0 before it has ended. */
int command__status(const struct command *c);
/* CPU time that it used, including children that it waited for; 0 before it has ended. */
uint64_t command__cpu_ns(const struct command *c);

/* ── entry.c ─────────────────────────────────────────────────────────────────────────────── */

/*
 * True if a process can be stopped at its entry. This is tried on a child, since some virtual
 * machines accept values for the debug registers without acting on them. To be called before ptrace
 * is restricted to the command (rights.c).
 */
bool entry__works(void);
/* Makes the process, which must be a stopped tracee of ours, stop with SIGTRAP at its program's
 * entry. -ENOENT: no dynamic linker runs before it; other errors: this machine cannot do it. */
int entry__set(pid_t pid);
/* Undoes entry__set(). The process must be stopped. */
void entry__clear(pid_t pid);

#endif
