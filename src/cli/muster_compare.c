#include "cli/muster_compare.h"

#include "base/rng.h"
#include "cli/muster_options.h"
#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "cli/muster_words.h"
#include "report/compare.h"
#include "report/expression.h"
#include "report/layout.h"
#include "report/save.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED_MAX 64

struct compare_arguments {
  struct compare_settings settings;
  const char *allowed[ALLOWED_MAX];
  const char **path; /* of both sides, base first */
  int paths, base_paths;
  bool has_candidate;          /* "--" was there */
  struct run_arguments output; /* its output, json and junit only */
  bool help;
};

static const struct word_option options[] = {
    {"fail-on", "GATE,...", "exit 1 on such a change, as 'delivery.p99 +10%'"},
    {"allow-different", "KEY,...", "compare although this comparability key differs; the output says so"},
    {"output", "PATH", "JSON document: a new file, or a folder"},
    {"json", "PATH|-", "as --output; '-' prints JSON instead of text"},
    {"junit", "FILE", "JUnit XML with each gate as a test, a new file"},
};
#define OPTIONS (sizeof options / sizeof options[0])
enum { OPTION_FAIL_ON, OPTION_ALLOW, OPTION_OUTPUT, OPTION_JSON, OPTION_JUNIT };

static void print_help(void) {
  fputs("Usage: muster compare BASE... -- CANDIDATE... [options]\n\n"
        "BASE and CANDIDATE are run reports, folders of them, or trials documents of `muster run --trials`.\n"
        "Refused unless what the figures mean is equal on both sides and every trial is valid. For each\n"
        "metric: faster, slower, or no difference shown. 5 trials a side are the least that can show one.\n\n",
      stdout);
  for (size_t i = 0; i < OPTIONS; i++)
    word_help(&options[i]);
  char names[EXPRESSION_LIST_MAX];
  expression_list_clocks(names);
  putchar('\n');
  page_text(stdout, "clocks", "%s; each has p50 p75 p90 p95 p99 p99.9 p99.99 mean max, as delivery.p99", names);
  page_text(stdout, "rates",
      "attempts_per_second acks_per_second deliveries_per_second connections_per_second publishes_per_core_second");
  expression_list_operations(names);
  page_text(stdout, "operations",
      "%s; each has the same, as put_document.p99, and succeeded_per_second; those of several items items_per_second "
      "too",
      names);
  puts("\nExit codes: 0 compared, 1 a gate (--fail-on) broke, 2 usage, 3 refused, or a gate that could not be\n"
       "decided.");
}

/* Splits at commas inside the argument itself, which lives as long as the program. */
static enum status allow(char *text, struct compare_arguments *out, struct err *err) {
  char *rest = text;
  for (char *key = strsep(&rest, ","); key; key = strsep(&rest, ",")) {
    if (out->settings.allowed_count == ALLOWED_MAX) {
      return err_set(err, STATUS_USAGE, "--allow-different: more than %d keys", ALLOWED_MAX);
    }
    if (*key == '\0') return err_set(err, STATUS_USAGE, "--allow-different: a key is empty: name one, as ack_policy");
    out->allowed[out->settings.allowed_count++] = key;
  }
  return STATUS_OK;
}

/* Takes the option at argv[*at]; *at then stands on its last word. */
static enum status take_option(int argc, char **argv, int *at, struct compare_arguments *out, struct err *err) {
  size_t index = 0;
  char *value;
  while (index < OPTIONS && !word_names(argv[*at], &options[index]))
    index++;
  if (index == OPTIONS) return word_unknown(argv[*at], options, OPTIONS, "compare", err);
  enum status status = word_value(&options[index], argc, argv, at, &value, err);
  if (status != STATUS_OK) return status;
  if (index == OPTION_FAIL_ON && gate_parse(value, &out->settings.gates, err) != STATUS_OK) {
    return err_prefix(err, "--fail-on");
  }
  if (index == OPTION_ALLOW) return allow(value, out, err);
  if (index == OPTION_OUTPUT) out->output.output = value;
  if (index == OPTION_JSON) out->output.json = value;
  if (index == OPTION_JUNIT) out->output.junit = value;
  return STATUS_OK;
}

static enum status parse(int argc, char **argv, struct compare_arguments *out, struct err *err) {
  for (int i = 0; i < argc; i++) {
    enum status status = STATUS_OK;
    if (word_is_help(argv[i])) {
      out->help = true;
    } else if (strcmp(argv[i], "--") == 0) {
      if (out->has_candidate) status = err_set(err, STATUS_USAGE, "one -- between BASE and CANDIDATE is enough");
      out->has_candidate = true;
      out->base_paths = out->paths;
    } else if (word_is_option(argv[i])) {
      status = take_option(argc, argv, &i, out, err);
    } else {
      out->path[out->paths++] = argv[i];
    }
    if (status != STATUS_OK || out->help) return status;
  }
  out->settings.allowed = out->allowed;
  if (!out->has_candidate || out->base_paths == 0 || out->base_paths == out->paths) {
    return err_set(err, STATUS_USAGE, "name both sides: muster compare BASE... -- CANDIDATE...");
  }
  if (out->output.output && out->output.json && !session_prints_json(&out->output)) {
    return err_set(err, STATUS_USAGE, "--output and --json name the same document: give one of them");
  }
  return session_check_new_file("--junit", out->output.junit, err);
}

static enum status read_sides(
    const struct compare_arguments *arguments, struct trial_list *base, struct trial_list *candidate, struct err *err) {
  for (int i = 0; i < arguments->paths; i++) {
    enum status status = trial_list_read(i < arguments->base_paths ? base : candidate, arguments->path[i], err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

static enum status save(const struct compare_arguments *arguments, const struct comparison *comparison,
    char path[PATH_MAX], struct err *err) {
  uint64_t number;
  char id[24], now[40];
  random_bytes(&number, sizeof number);
  snprintf(id, sizeof id, "%016" PRIx64, number);
  session_now(now);
  struct session_document document = {now, id, "compare"};
  session_path(path, session_place(&arguments->output), &document);
  return save_new_file(path, compare_write_json, comparison, err);
}

/* refusal: why there is no comparison, or NULL. The code is that of the comparison unless the file cannot be written.
 */
static int write_junit(
    const struct compare_arguments *arguments, const struct comparison *comparison, const char *refusal, int code) {
  struct err err = {0};
  char now[40];
  session_now(now);
  struct compare_junit junit = {comparison, refusal, now};
  if (!arguments->output.junit) return code;
  bool saved = save_new_file(arguments->output.junit, compare_write_junit, &junit, &err) == STATUS_OK;
  return saved ? code : complain(&err);
}

static int publish(const struct compare_arguments *arguments, const struct comparison *comparison) {
  struct err err = {0};
  int code = compare_exit_code(comparison);
  char path[PATH_MAX];
  bool has_place = arguments->output.output || (arguments->output.json && !session_prints_json(&arguments->output));
  if (has_place && save(arguments, comparison, path, &err) != STATUS_OK) {
    code = complain(&err);
    has_place = false;
  }
  enum status status = session_prints_json(&arguments->output) ? compare_write_json(stdout, comparison, &err)
                                                               : compare_write_text(stdout, comparison, &err);
  if (status != STATUS_OK) return complain(&err);
  code = finish_stdout(code);
  if (has_place) fprintf(stderr, "comparison: %s\n", path);
  return code;
}

static int compare(const struct compare_arguments *arguments) {
  struct err err = {0};
  struct trial_list base = {0}, candidate = {0};
  struct comparison *comparison = calloc(1, sizeof *comparison);
  int code;
  if (!comparison) {
    err_set(&err, STATUS_MEMORY, "out of memory for the comparison");
    code = complain(&err);
  } else if (read_sides(arguments, &base, &candidate, &err) != STATUS_OK ||
             compare_check_allowed(&base, &candidate, &arguments->settings, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (compare_trials(&base, &candidate, &arguments->settings, comparison, &err) != STATUS_OK) {
    complain(&err);
    code = write_junit(arguments, comparison, err.text, EXIT_INVALID); /* the command line is in order, the runs not */
  } else {
    code = write_junit(arguments, comparison, NULL, publish(arguments, comparison));
  }
  free(comparison);
  trial_list_free(&base);
  trial_list_free(&candidate);
  return code;
}

int command_compare(int argc, char **argv) {
  struct compare_arguments arguments = {0};
  struct err err = {0};
  int code;
  arguments.path = calloc((size_t)argc + 1, sizeof *arguments.path);
  if (!arguments.path) {
    err_set(&err, STATUS_MEMORY, "out of memory for the command line");
    return complain(&err);
  }
  if (parse(argc, argv, &arguments, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (arguments.help) {
    print_help();
    code = finish_stdout(EXIT_VALID);
  } else {
    code = compare(&arguments);
  }
  free(arguments.path);
  return code;
}
