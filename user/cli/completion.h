/* SPDX-License-Identifier: GPL-2.0-or-later */
/* completion: shell completion of the options. Private to the cli room. */
#ifndef SAFESCOPED_CLI_COMPLETION_H
#define SAFESCOPED_CLI_COMPLETION_H

/*
 * Prints the completion script for "bash" or "zsh", made from the table of options, to standard
 * output; the caller checks whether that worked. Returns the process's exit code; another shell is
 * reported as wrong usage.
 */
int completion__print(const char *shell);

#endif
