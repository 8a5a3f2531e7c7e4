#include "cli/muster_find.h"

#include "cli/muster_options.h"
#include "cli/muster_outputs.h"
#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "cli/muster_words.h"
#include "load/find.h"
#include "load/run.h"
#include "report/html.h"
#include "report/save.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_SHARE 4 /* a step lasts a quarter of the full length until the answer is confirmed, */
#define SHORT_MIN_NS UINT64_C(1000000000)
#define RESOLUTION 0.05
#define RATE_MAX 100e6

static const struct {
  struct word_option word;
  size_t offset;     /* in struct find_options */
  unsigned commands; /* bit of each enum find_command that has it */
} options[] = {
    {{"vary", "rate|clients", "what grows from test to test [rate]"}, offsetof(struct find_options, vary), 1},
    {{"from", "N", "first load [100 publishes/s, or 10 clients; calibrate: 1k]"}, offsetof(struct find_options, from),
        3},
    {{"to", "N", "highest load to try [1M publishes/s, or 100k clients]"}, offsetof(struct find_options, to), 3},
    {{"step-size", "N", "climb by adding so much [doubling]"}, offsetof(struct find_options, step_size), 3},
    {{"resolution", "SHARE", "width of the answer [5%]"}, offsetof(struct find_options, resolution), 3},
    {{"initial-clients", "N", "as --vary clients --from N"}, offsetof(struct find_options, initial_clients), 1},
    {{"limit-rtt", "TIME", "objective on the server's own answer to a publish [500ms]"},
        offsetof(struct find_options, limit_rtt), 1},
    {{"limit-percentile", "N", "which percentile of it [95]"}, offsetof(struct find_options, limit_percentile), 1},
    {{"keep-server", NULL, "one embedded server for all tests, not a fresh one for each"},
        offsetof(struct find_options, keep_server), 1},
    {{"show", NULL, "print what was calibrated before, and do nothing"}, offsetof(struct find_options, show), 2},
};
#define OPTIONS (sizeof options / sizeof options[0])

void find_options_help(enum find_command command) {
  for (size_t i = 0; i < OPTIONS; i++) {
    if (options[i].commands >> command & 1) word_help(&options[i].word);
  }
}

static void print_help(void) {
  fputs("Usage: muster find WORKLOAD [options of a search] [options of `muster run`]\n\n"
        "Runs the workload again and again with more load until an objective (--slo) breaks, narrows the border\n"
        "down and tests both sides of it again. Without --slo: delivery.p99<250ms, lost=0, rejected=0,\n"
        "timed_out=0. --duration is the length of the last tests; the others last a quarter of it, and longer\n"
        "where an objective's percentile needs more values.\n\nSearch:\n",
      stdout);
  find_options_help(FIND_COMMAND);
  puts("\n`muster help run all` lists the options of a run. --json - prints the whole search as JSON.\n"
       "Exit codes: 0 an answer, 1 no load held, 2 usage, 3 no answer (the generator was the limit, or the\n"
       "search was cut short), 4 target unreachable.");
}

static size_t find_option(enum find_command command, const char *word) {
  for (size_t i = 0; i < OPTIONS; i++) {
    if (options[i].commands >> command & 1 && word_names(word, &options[i].word)) return i;
  }
  return OPTIONS;
}

/* Stores the option at argv[*at]; *at then stands on its last word. */
static enum status take_option(
    size_t index, int argc, char **argv, int *at, struct find_options *out, struct err *err) {
  char *value, *field = (char *)out + options[index].offset;
  enum status status = word_value(&options[index].word, argc, argv, at, &value, err);
  if (status != STATUS_OK) return status;
  if (value) {
    *(const char **)(void *)field = value;
  } else {
    *(bool *)field = true;
  }
  return STATUS_OK;
}

enum status find_options_split(enum find_command command, int argc, char **argv, struct find_options *out, char **rest,
    int *rest_count, struct err *err) {
  *rest_count = 0;
  enum status status = STATUS_OK;
  for (int i = 0; i < argc && status == STATUS_OK; i++) {
    size_t index = find_option(command, argv[i]);
    if (word_is_help(argv[i])) out->help = true;
    if (index == OPTIONS) {
      rest[(*rest_count)++] = argv[i];
    } else {
      status = take_option(index, argc, argv, &i, out, err);
    }
  }
  return status;
}

static enum status read_load(const char *name, const char *text, bool is_count, double *out, struct err *err) {
  if (!text) return STATUS_OK;
  double most = is_count ? CLIENTS_MAX : RATE_MAX;
  if (parse_rate(text, out) && *out > 0 && *out <= most && (!is_count || *out == floor(*out))) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--%s %.40s: give %s above 0 and up to %.0f, as 50 or 2k", name, text,
      is_count ? "a whole number of clients" : "publishes per second", most);
}

static enum status read_resolution(const char *text, double *out, struct err *err) {
  *out = RESOLUTION;
  if (!text) return STATUS_OK;
  char number[16];
  size_t len = strlen(text);
  bool percent = len > 1 && text[len - 1] == '%';
  if (len < sizeof number) {
    memcpy(number, text, len + 1);
    if (percent) number[len - 1] = '\0';
    if (parse_rate(number, out)) {
      if (percent) *out /= 100;
      if (*out >= 0.001 && *out <= 0.5) return STATUS_OK;
    }
  }
  return err_set(err, STATUS_USAGE, "--resolution %.40s: give a share from 0.1%% to 50%%, as 5%% or 0.05", text);
}

enum status find_search_read(
    enum find_command command, const struct find_options *o, struct find_settings *out, struct err *err) {
  if (o->initial_clients && (o->from || (o->vary && strcmp(o->vary, "clients") != 0))) {
    return err_set(err, STATUS_USAGE, "--initial-clients means --vary clients --from: leave those out");
  }
  if (o->vary && strcmp(o->vary, "rate") != 0 && strcmp(o->vary, "clients") != 0) {
    return err_set(err, STATUS_USAGE, "--vary %.40s: give one of rate|clients", o->vary);
  }
  bool is_count = o->initial_clients || (o->vary && strcmp(o->vary, "clients") == 0);
  struct search_settings *search = &out->search;
  *search = (struct search_settings){
      .from = command == CALIBRATE_COMMAND ? 1000
              : is_count                   ? 10
                                           : 100,
      .to = is_count ? 100e3 : 1e6,
      .whole_numbers = is_count,
      .tests_max = FIND_TESTS_MAX,
  };
  out->vary = is_count ? FIND_CLIENTS : FIND_RATE;
  enum status status = read_load("from", o->from, is_count, &search->from, err);
  if (status == STATUS_OK) status = read_load("initial-clients", o->initial_clients, is_count, &search->from, err);
  if (status == STATUS_OK) status = read_load("to", o->to, is_count, &search->to, err);
  if (status == STATUS_OK) status = read_load("step-size", o->step_size, is_count, &search->step, err);
  if (status == STATUS_OK) status = read_resolution(o->resolution, &search->resolution, err);
  if (status == STATUS_OK && search->from > search->to) {
    status = err_set(err, STATUS_USAGE, "--from %g is above --to %g", search->from, search->to);
  }
  return status;
}

/* websocket-shootout's limit, on its round trip: the sender's own answer from the server. */
static enum status add_limit(
    const struct find_options *o, enum topology_kind topology, struct slo_list *objectives, struct err *err) {
  if (!o->limit_rtt && !o->limit_percentile) return STATUS_OK;
  uint64_t rtt_ns = 500000000, percentile = 95;
  if (o->limit_rtt && (!parse_duration_ns(o->limit_rtt, &rtt_ns) || rtt_ns == 0)) {
    return err_set(err, STATUS_USAGE, "--limit-rtt %.40s: give a time with its unit, as 500ms", o->limit_rtt);
  }
  if (o->limit_percentile && (!parse_count(o->limit_percentile, 99, &percentile) || percentile < 1)) {
    return err_set(
        err, STATUS_USAGE, "--limit-percentile %.40s: give a whole number from 1 to 99", o->limit_percentile);
  }
  char text[OBJECTIVE_TEXT_MAX];
  snprintf(text, sizeof text, "%s.p%u<=%lluns", topology == TOPOLOGY_BROADCAST ? "broadcast_result" : "ack",
      (unsigned)percentile, (unsigned long long)rtt_ns);
  return slo_parse(text, objectives, err);
}

struct finding {
  const struct run_arguments *arguments;
  struct session session;
  FILE *table; /* NULL: none */
  const struct find_settings *settings;
  uint32_t steps;
};

static enum status run_step(void *context, const struct workload *workload, struct report *report, struct err *err) {
  struct finding *finding = context;
  enum status status = run_check(workload, finding->session.driver, err);
  return status == STATUS_OK ? session_run(&finding->session, workload, report, err) : status;
}

static void show_step(void *context, const struct find_step *step) {
  struct finding *finding = context;
  finding->steps++;
  if (!finding->table) return;
  if (finding->steps == 1) find_write_head(finding->table, finding->settings);
  find_write_step(finding->table, finding->settings, finding->steps, step);
  fflush(finding->table);
}

static enum status write_page(FILE *file, const void *content, struct err *err) {
  const struct find *find = content;
  char title[160];
  snprintf(title, sizeof title, "search: %.80s, %s - muster", find->settings.workload->name, find->started_at);
  return html_write_of(file, title, find_write_json, find, err);
}

int find_publish(const struct run_arguments *arguments, const struct find *find) {
  struct err err = {0};
  int code = find_exit_code(find);
  char path[PATH_MAX];
  const char *place = session_place(arguments);
  bool saved = false;
  if (place) {
    char name[48];
    snprintf(name, sizeof name, "%.40s", arguments->workload.name);
    struct session_document document = {find->started_at, find->id, name};
    session_path(path, place, &document);
    saved = save_new_file(path, find_write_json, find, &err) == STATUS_OK;
    if (!saved) code = complain(&err);
  }
  if (arguments->html && save_new_file(arguments->html, write_page, find, &err) != STATUS_OK) code = complain(&err);
  enum status status =
      session_prints_json(arguments) ? find_write_json(stdout, find, &err) : find_write_answer(stdout, find, &err);
  if (status != STATUS_OK) return complain(&err);
  code = finish_stdout(code);
  if (saved && !arguments->quiet) fprintf(stderr, "search: %s\n", path);
  return code;
}

static int search(const struct run_arguments *arguments, struct find_settings *settings, struct session *session) {
  struct err err = {0};
  struct find *find = calloc(1, sizeof *find);
  if (!find) {
    err_set(&err, STATUS_MEMORY, "out of memory for the search");
    return complain(&err);
  }
  struct finding finding = {.arguments = arguments, .session = *session, .settings = settings};
  if (!session_prints_json(arguments)) finding.table = stdout;
  settings->run = run_step;
  settings->ended = show_step;
  settings->context = &finding;
  session_catch_signals();
  enum status status = session_open_web(arguments, &finding.session.web, &err);
  if (status == STATUS_OK) status = find_run(find, settings, &err);
  bool is_found = status == STATUS_OK;
  int code = is_found ? find_publish(arguments, find) : complain(&err);
  session_close_web(
      finding.session.web, arguments->workload.name, find_write_json, is_found ? find : NULL, is_found ? NULL : &err);
  free(find);
  return code;
}

static int search_with_server(
    const struct run_arguments *arguments, struct find_settings *settings, struct session *session) {
  struct err err = {0};
  struct embedded server;
  if (embedded_start(&server, &arguments->workload, &err) != STATUS_OK) return complain(&err);
  session->kept_server = &server;
  int code = search(arguments, settings, session);
  session->kept_server = NULL;
  if (embedded_stop(&server, &err) != STATUS_OK) complain(&err);
  return code;
}

void find_settings_of(const struct run_arguments *arguments, struct find_settings *out) {
  const struct workload *workload = &arguments->workload;
  out->workload = workload;
  out->full_ns = workload->duration_ns;
  out->short_ns = workload->duration_ns / SHORT_SHARE;
  if (out->short_ns < SHORT_MIN_NS) out->short_ns = SHORT_MIN_NS;
  if (out->short_ns > out->full_ns) out->short_ns = out->full_ns;
}

static enum status add_default_objectives(struct slo_list *objectives, unsigned capabilities, struct err *err) {
  bool has_acks = capabilities & CAPABILITY_ACKS;
  return slo_parse(
      has_acks ? "delivery.p99<250ms,lost=0,rejected=0,timed_out=0" : "delivery.p99<250ms,lost=0", objectives, err);
}

static enum status prepare(const struct find_options *o, struct run_arguments *arguments,
    struct find_settings *settings, struct session *session, struct err *err) {
  struct workload *workload = &arguments->workload;
  enum status status = find_search_read(FIND_COMMAND, o, settings, err);
  if (status == STATUS_OK) status = add_limit(o, workload->topology, &arguments->slos, err);
  if (status == STATUS_OK) status = session_driver(arguments, &session->driver, err);
  if (status == STATUS_OK && arguments->slos.count == 0) {
    status = add_default_objectives(&arguments->slos, session->driver->capabilities, err);
  }
  if (status == STATUS_OK && arguments->trials) {
    status = err_set(err, STATUS_USAGE, "--trials belongs to `muster run`: a search repeats its tests by itself");
  }
  const char *output = outputs_given(arguments);
  if (status == STATUS_OK && output) {
    status =
        err_set(err, STATUS_USAGE, "%s belongs to one run: `muster run` at the load that was found writes it", output);
  }
  bool has_one_rate = !workload_is_closed(workload) && workload->steps == 0 && workload->ramp_to_per_sec == 0;
  if (status == STATUS_OK && settings->vary == FIND_RATE && !has_one_rate) {
    status = err_set(err, STATUS_USAGE,
        "--vary rate needs a workload at one constant rate: this one is closed or changes "
        "its rate; --vary clients works with it");
  }
  if (status == STATUS_OK && settings->vary == FIND_CLIENTS && workload->in_flight > settings->search.from) {
    status = err_set(err, STATUS_USAGE,
        "--concurrent %u is more than the %.0f clients of the first test: give --initial-clients %u or more",
        workload->in_flight, settings->search.from, workload->in_flight);
  }
  if (status == STATUS_OK && o->keep_server && workload->target) {
    status = err_set(err, STATUS_USAGE, "--keep-server is for the embedded musterd: leave it or --target out");
  }
  if (status == STATUS_OK) status = session_check_files(arguments, err);
  if (status != STATUS_OK) return status;
  settings->subject = FIND_SERVER;
  settings->objectives = &arguments->slos;
  settings->takes_shares = true;
  find_settings_of(arguments, settings);
  return STATUS_OK;
}

static int find_with(const struct find_options *o, struct run_arguments *arguments) {
  struct err err = {0};
  struct find_settings settings = {0};
  struct session session = {.objectives = &arguments->slos,
      .observe = &arguments->observe,
      .quiet = arguments->quiet,
      .is_one_of_many = true};
  if (prepare(o, arguments, &settings, &session, &err) != STATUS_OK) return complain(&err);
  return o->keep_server ? search_with_server(arguments, &settings, &session) : search(arguments, &settings, &session);
}

static int parse_and_find(int argc, char **argv, char **rest) {
  struct find_options o = {0};
  struct run_arguments arguments;
  struct err err = {0};
  int rest_count;
  if (find_options_split(FIND_COMMAND, argc, argv, &o, rest, &rest_count, &err) != STATUS_OK) return complain(&err);
  if (o.help) {
    print_help();
    return finish_stdout(EXIT_VALID);
  }
  if (rest_count == 0) {
    err_set(&err, STATUS_USAGE, "say which workload to search with: `muster find private` or `muster find group`");
    return complain(&err);
  }
  bool parsed = run_arguments_parse(rest_count, rest, &arguments, &err) == STATUS_OK;
  int code = parsed ? find_with(&o, &arguments) : complain(&err);
  run_arguments_free(&arguments);
  return code;
}

int command_find(int argc, char **argv) {
  char **rest = calloc((size_t)argc + 1, sizeof *rest);
  if (!rest) {
    struct err err = {0};
    err_set(&err, STATUS_MEMORY, "out of memory for the command line");
    return complain(&err);
  }
  int code = parse_and_find(argc, argv, rest);
  free(rest);
  return code;
}
