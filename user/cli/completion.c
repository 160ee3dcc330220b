/* SPDX-License-Identifier: GPL-2.0-or-later */
/* completion: generates bash and zsh completion from the table of options. */
#include "completion.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/base.h"
#include "export/export.h"
#include "option_table.h"

#define LANES "thread,capability,haskell"

/* Options that argp adds to the table. */
static const char *const by_argp[] = {"--help", "--usage", "--version"};

/* The literal values in the value's name: "FILE|auto|none" has two. */
static void put_words(const char *arg)
{
	const char *between = "";

	for (size_t len; *arg; arg += len + (arg[len] == '|')) {
		len = strcspn(arg, "|");
		if (!islower((unsigned char)*arg))
			continue;
		printf("%s%.*s", between, (int)len, arg);
		between = " ";
	}
}

/* The second one of two values ("A B"), which is a word of its own; or NULL. */
static const char *second_value(const struct option_row *row)
{
	const char *blank = strchr(row->arg, ' ');

	return blank ? blank + 1 : NULL;
}

static bool has_words(const struct option_row *row)
{
	return strstr(row->arg, "|") && row->arg[strcspn(row->arg, "abcdefghijklmnopqrstuvwxyz")];
}

/* Prints a list of names separated by commas (and blanks), with blanks only. */
static void put_list(const char *list)
{
	const char *between = "";

	for (size_t len; *list; list += len) {
		list += strspn(list, ", ");
		len = strcspn(list, ", ");
		printf("%s%.*s", len ? between : "", (int)len, list);
		between = " ";
	}
}

/* ── bash ────────────────────────────────────────────────────────────────────────────────── */

static const char bash_head[] =
	"# bash completion for safescoped, made by safescoped --completion bash\n"
	"\n"
	"_safescoped_words()\n"
	"{\n"
	"\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	"}\n"
	"\n"
	"_safescoped_list()\n"
	"{\n"
	"\tlocal before=\"\"\n"
	"\tif [[ $cur == *,* ]]; then before=${cur%,*},; fi\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -P \"$before\" -- \"${cur##*,}\")\n"
	"\tcompopt -o nospace 2>/dev/null\n"
	"}\n"
	"\n"
	"_safescoped_files()\n"
	"{\n"
	"\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"}\n"
	"\n"
	"_safescoped()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} option=\"\" second=\"\" i\n"
	"\tif ((COMP_CWORD > 0)); then option=${COMP_WORDS[COMP_CWORD - 1]}; fi\n"
	"\tCOMPREPLY=()\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	"\t\t\t# a command of its own\n"
	"\t\t\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t\t\t_command_offset $((i + 1))\n"
	"\t\t\telse\n"
	"\t\t\t\t_safescoped_files\n"
	"\t\t\tfi\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t# an option, `=` and its value are three words\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur=\"\"\n"
	"\telif [[ $option == = ]] && ((COMP_CWORD > 1)); then\n"
	"\t\toption=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n";

static const char bash_tail[] = "\tif [[ $cur == -* ]]; then\n"
				"\t\t_safescoped_words \"$all\"\n"
				"\telif [[ $second ]]; then\n"
				"\t\t_safescoped_files\n"
				"\tfi\n"
				"}\n"
				"\n"
				"complete -F _safescoped safescoped\n";

static void put_bash_value(const struct option_row *row)
{
	if (row->flags & (OPTION_FORMATS | OPTION_LANES)) {
		printf("\t\t_safescoped_list \"");
		put_list(row->flags & OPTION_FORMATS ? export__names().s : LANES);
		printf("\"\n");
	}
	if (row->flags & OPTION_PID)
		printf("\t\t_safescoped_list \"$(cd /proc && echo [0-9]*)\"\n");
	if (row->flags & OPTION_USER_NAME)
		printf("\t\tmapfile -t COMPREPLY < <(compgen -u -- \"$cur\")\n");
	if (row->flags & (OPTION_FILE | OPTION_DIR))
		printf("\t\t_safescoped_files\n");
	if (has_words(row)) {
		printf("\t\t_safescoped_words \"");
		put_words(row->arg);
		printf("\"\n");
	}
}

static void print_bash(void)
{
	fputs(bash_head, stdout);
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (option_table__is_long(row) && row->arg && second_value(row))
			printf("\tif [[ \" ${COMP_WORDS[*]:1:COMP_CWORD-1} \" == *\" --%s \"* ]]; "
			       "then second=yes; fi\n",
			       row->name);
	printf("\tcase $option in\n");
	for (const struct option_row *row = option_rows; row->doc; row++) {
		if (!option_table__is_long(row) || !row->arg)
			continue;
		printf("\t--%s", row->name);
		if (option_table__has_letter(row))
			printf(" | -%c", row->key);
		printf(")\n");
		put_bash_value(row);
		printf("\t\treturn\n\t\t;;\n");
	}
	printf("\tesac\n\tlocal all=\"");
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (option_table__is_long(row))
			printf("--%s ", row->name);
	for (size_t i = 0; i < ARRAY_SIZE(by_argp); i++)
		printf("%s%s", by_argp[i], i + 1 < ARRAY_SIZE(by_argp) ? " " : "\"\n");
	fputs(bash_tail, stdout);
}

/* ── zsh ─────────────────────────────────────────────────────────────────────────────────── */

/* The beginning of the option's description, in one line, in the form that _arguments expects. */
static void put_zsh_doc(const char *doc)
{
	const char *more = strstr(doc, " (");
	size_t len = strcspn(doc, ";");

	if (more && (size_t)(more - doc) < len)
		len = (size_t)(more - doc);
	putchar('[');
	for (size_t i = 0; i < len; i++) {
		if (doc[i] == '[' || doc[i] == ']')
			putchar('\\');
		if (doc[i] == '\'')
			fputs("'\\'", stdout);
		putchar(doc[i]);
	}
	putchar(']');
}

static void put_zsh_value(const struct option_row *row)
{
	printf(":%.*s:", (int)strcspn(row->arg, "[| "), row->arg);
	if (row->flags & (OPTION_FORMATS | OPTION_LANES)) {
		printf("{_values -s , %s ", row->name);
		put_list(row->flags & OPTION_FORMATS ? export__names().s : LANES);
		putchar('}');
	} else if (row->flags & OPTION_PID) {
		printf("{compset -P \"*,\"; compadd -- /proc/<->(N\\:t)}");
	} else if (row->flags & OPTION_USER_NAME) {
		printf("_users");
	} else if (has_words(row) && row->flags & OPTION_FILE) {
		printf("{compadd ");
		put_words(row->arg);
		printf("; _files}");
	} else if (has_words(row)) {
		putchar('(');
		put_words(row->arg);
		putchar(')');
	} else if (row->flags & OPTION_FILE) {
		printf("_files");
	} else if (row->flags & OPTION_DIR) {
		printf("_files -/");
	}
	if (second_value(row))
		printf(":%s:%s", second_value(row), row->flags & OPTION_FILE ? "_files" : "");
}

static void put_zsh_option(const struct option_row *row, bool letter)
{
	printf("\t'%s", row->flags & OPTION_MANY ? "*" : "");
	if (letter)
		printf("-%c%s", row->key, row->arg ? "+" : "");
	else
		printf("--%s%s", row->name, row->arg ? "=" : "");
	put_zsh_doc(row->doc);
	if (row->arg)
		put_zsh_value(row);
	printf("' \\\n");
}

static void print_zsh(void)
{
	printf("#compdef safescoped\n"
	       "# made by safescoped --completion zsh\n\n"
	       "local -a before=(\"${(@)words[1,CURRENT-1]}\")\n"
	       "_arguments -s -S \\\n");
	for (const struct option_row *row = option_rows; row->doc; row++) {
		if (option_table__is_long(row))
			put_zsh_option(row, false);
		if (option_table__has_letter(row))
			put_zsh_option(row, true);
	}
	for (size_t i = 0; i < ARRAY_SIZE(by_argp); i++)
		printf("\t%s \\\n", by_argp[i]);
	/* without the dashes a command is wrong usage */
	printf("\t'*::command:{(( $before[(Ie)--] )) && _normal}'\n");
}

int completion__print(const char *shell)
{
	if (!strcmp(shell, "bash")) {
		print_bash();
	} else if (!strcmp(shell, "zsh")) {
		print_zsh();
	} else {
		log_error("--completion %s: bash or zsh", shell);
		return EX_USAGE;
	}
	return EXIT_COMPLETE;
}
