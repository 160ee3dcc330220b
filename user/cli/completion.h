/* SPDX-License-Identifier: GPL-2.0-or-later */
/* completion: what makes a shell complete the options. Private to the cli room. */
#ifndef SAFESCOPED_CLI_COMPLETION_H
#define SAFESCOPED_CLI_COMPLETION_H

/*
 * Prints the completion for "bash" or "zsh", made from the table of options, to standard output.
 * Returns the process's exit code: wrong usage for another shell, which is printed.
 */
int completion__print(const char *shell);

#endif
