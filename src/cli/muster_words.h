/* The words of a command line, for commands that have a few options of their own beside files or a workload: find,
 * calibrate, compare and report. The many of `muster run` are muster_options.h's. */
#ifndef MUSTER_CLI_MUSTER_WORDS_H
#define MUSTER_CLI_MUSTER_WORDS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct word_option {
  const char *name, *value; /* value: what stands for it in the help; NULL: a switch */
  const char *help;
};

/* An option's line of the help, on standard output. */
void word_help(const struct word_option *option);

/* "--name", "-name" or "--name=value"; "-" and "--" alone are none. */
bool word_is_option(const char *word);
bool word_is_help(const char *word); /* --help, -help, -h */
bool word_names(const char *word, const struct word_option *option);

/* The option's value, in argv[*at] itself or in the word behind it, on which *at then stands. *out is NULL for a
 * switch. */
enum status word_value(const struct word_option *option, int argc, char **argv, int *at, char **out, struct err *err);

/* The error of an option that the command does not have; always STATUS_USAGE. */
enum status word_unknown(
    const char *word, const struct word_option *options, size_t count, const char *command, struct err *err);

#endif
