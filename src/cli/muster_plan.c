#include "cli/muster_plan.h"

#include "base/clock.h"
#include "cli/muster_options.h"
#include "cli/muster_presets.h"
#include "cli/muster_say.h"
#include "cli/muster_scenario.h"
#include "cli/muster_session.h"
#include "load/check.h"
#include "load/estimate.h"
#include "load/run.h"
#include "load/settings.h"
#include "report/json_parts.h"
#include "report/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define CHANGES_MAX 8

struct plan_page {
  const struct run_arguments *arguments;
  const struct workload *workload;
  const struct driver *driver;
  struct totals totals;
  struct needs needs;
  char change[CHANGES_MAX][160]; /* what to do first, as root */
  uint32_t changes;
  bool fits; /* this machine can carry it */
};

struct number {
  char text[32];
};

static struct number count(uint64_t value) {
  struct number number;
  format_count(number.text, value);
  return number;
}

static struct number bytes(uint64_t value) {
  struct number number;
  format_bytes(number.text, value);
  return number;
}

/* --- what it would do --- */

static void print_title(const struct plan_page *page) {
  const struct scenario *scenario = &page->arguments->scenario;
  if (scenario->entries == 0) return;
  const struct scenario_entry *title = scenario_find(scenario, "", "title");
  const struct scenario_entry *description = scenario_find(scenario, "", "description");
  page_text(stdout, "scenario", "%s: %s", page->workload->name, title->value);
  if (description) page_text(stdout, "", "%.*s", (int)strcspn(description->value, "\n"), description->value);
}

static void print_traffic(const struct plan_page *page) {
  const struct workload *w = page->workload;
  const struct totals *t = &page->totals;
  if (w->topology == TOPOLOGY_HOLD) {
    page_text(stdout, "publishes", "none: connections are held, with keep-alives");
    return;
  }
  if (!t->known) {
    page_text(stdout, "publishes", "as many as the server answers within %g s", (double)w->duration_ns / 1e9);
    return;
  }
  page_text(stdout, "publishes", "%s measured, %s before them as warm-up", count(t->publishes).text,
      count(t->warmup_publishes).text);
  double publishes = t->publishes ? (double)t->publishes : 1;
  page_text(stdout, "deliveries", "%s expected at clients that connect: fan-out %.6g", count(t->deliveries).text,
      (double)t->deliveries / publishes);
  page_text(
      stdout, "copies", "%s for the server to place, %.6g for each publish", count(t->distributions).text, t->copies);
}

/* The payload's own bytes: framing depends on the protocol, and adds some 60 to 150 to each. */
static void print_bandwidth(const struct plan_page *page) {
  const struct workload *w = page->workload;
  const struct totals *t = &page->totals;
  double rate = workload_is_closed(w) ? 0 : workload_owed(w, (double)w->duration_ns / 1e9);
  if (!t->known || t->publishes == 0) return;
  double fan_out = (double)t->deliveries / (double)t->publishes;
  if (rate <= 0) {
    page_text(stdout, "bandwidth", "%s to the server and %s from it in all, payloads alone",
        bytes(t->publishes * w->payload_bytes).text, bytes(t->deliveries * w->payload_bytes).text);
    return;
  }
  double per_sec = rate / ((double)w->duration_ns / 1e9) * w->payload_bytes;
  if (workload_limit(w)) per_sec = workload_first_rate(w) * w->payload_bytes;
  page_text(stdout, "bandwidth", "%s/s to the server and %s/s from it, payloads alone", bytes((uint64_t)per_sec).text,
      bytes((uint64_t)(per_sec * fan_out)).text);
}

static void print_durations(const struct plan_page *page) {
  const struct workload *w = page->workload;
  char measure[64];
  double length_s = (double)w->duration_ns / 1e9;
  uint64_t limit = workload_limit(w);
  if (limit && workload_is_closed(w)) {
    snprintf(measure, sizeof measure, "measure until all are answered, at most %g s", length_s);
  } else {
    double by_count_s = limit ? (double)limit / workload_first_rate(w) : length_s;
    snprintf(measure, sizeof measure, "measure %.6g s", by_count_s < length_s ? by_count_s : length_s);
  }
  char catch_up[48] = "";
  if (w->backlog) snprintf(catch_up, sizeof catch_up, ", catch-up at most %g s", (double)w->catch_up_deadline_ns / 1e9);
  page_text(stdout, "duration", "set-up at most %g s, connect at most %g s, warm-up %g s, %s, grace at most %g s%s",
      (double)w->setup_deadline_ns / 1e9, (double)w->connect_deadline_ns / 1e9, (double)w->warmup_ns / 1e9, measure,
      (double)w->grace_ns / 1e9, catch_up);
}

/* --- what it asks of this machine --- */

static void print_needs(const struct plan_page *page) {
  const struct needs *n = &page->needs;
  page_text(stdout, "connections", "%s of %s users, from %" PRIu32 " worker%s", count(n->connections).text,
      count(page->workload->clients).text, n->workers, n->workers == 1 ? "" : "s");
  page_text(stdout, "open files", "%s in a worker, of %s allowed", count(n->worker_descriptors).text,
      count(n->nofile_hard).text);
  if (!page->workload->target) page_text(stdout, "", "the embedded server spreads its own over its gateways");
  page_text(stdout, "sources", "%" PRIu32 " address%s to %" PRIu32 " target address%s, %s ports for each pair",
      n->source_addresses, n->source_addresses == 1 ? "" : "es", n->target_addresses,
      n->target_addresses == 1 ? "" : "es", count(n->source_ports).text);
  page_text(stdout, "memory", "generator %s, kernel %s%s%s", bytes(n->accounting_bytes).text,
      bytes(n->kernel_bytes).text, n->server_bytes ? ", embedded server " : "",
      n->server_bytes ? bytes(n->server_bytes).text : "");
  page_text(stdout, "", "the processes themselves, some MiB each, come on top");
  if (n->available_bytes != UINT64_MAX) page_text(stdout, "", "%s are available", bytes(n->available_bytes).text);
}

static uint64_t kernel_setting(const char *path) {
  unsigned long long value = 0;
  FILE *file = fopen(path, "re");
  if (!file) return UINT64_MAX;
  if (fscanf(file, "%llu", &value) != 1) value = UINT64_MAX; /* NOLINT(cert-err34-c): the kernel's own numbers */
  fclose(file);
  return value;
}

static void change(struct plan_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void change(struct plan_page *page, const char *format, ...) {
  va_list args;
  if (page->changes == CHANGES_MAX) return;
  va_start(args, format);
  vsnprintf(page->change[page->changes++], sizeof page->change[0], format, args);
  va_end(args);
}

static void advise(struct plan_page *page, const char *path, const char *name, uint64_t needed) {
  uint64_t value = kernel_setting(path);
  if (value < needed) change(page, "sysctl -w %s=%" PRIu64 "  (is %" PRIu64 ")", name, needed, value);
}

/* Commands that this machine needs first. */
static void find_changes(struct plan_page *page) {
  const struct needs *n = &page->needs;
  uint64_t in_one = n->worker_descriptors, in_all = n->connections * UINT64_C(2) + 4096;
  if (in_one > n->nofile_hard) {
    advise(page, "/proc/sys/fs/nr_open", "fs.nr_open", in_one);
    change(page, "ulimit -n %" PRIu64 "  (is %" PRIu64 ")", in_one, n->nofile_hard);
  }
  advise(page, "/proc/sys/fs/file-max", "fs.file-max", in_all);
  advise(page, "/proc/sys/net/core/somaxconn", "net.core.somaxconn", page->workload->connect_concurrency);
  advise(page, "/proc/sys/net/netfilter/nf_conntrack_max", "net.netfilter.nf_conntrack_max",
      n->connections + UINT64_C(4096));
  if (n->source_ports * n->source_addresses * n->target_addresses < n->connections) {
    change(page,
        "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\", or --local-addr or --target-addr with more addresses");
  }
}

static void print_changes(const struct plan_page *page) {
  page_text(stdout, "do first", "what this machine must be told before, as root:");
  for (uint32_t i = 0; i < page->changes; i++)
    page_text(stdout, "", "%s", page->change[i]);
  if (page->changes == 0) page_text(stdout, "", "nothing: its settings do");
}

static void print_page(const struct plan_page *page) {
  print_title(page);
  report_write_workload(stdout, page->workload);
  page_text(stdout, "target", "%s over driver %s",
      page->workload->target ? page->workload->target : "an embedded musterd", page->driver->name);
  print_traffic(page);
  print_bandwidth(page);
  print_durations(page);
  print_needs(page);
  print_changes(page);
  if (page->fits) page_text(stdout, "verdict", "this machine can carry it");
}

/* --- the same as JSON --- */

static void put_traffic(struct json_writer *w, const struct totals *t) {
  json_open_object(w, "traffic");
  json_put_bool(w, "known", t->known);
  json_put_uint(w, "warmup_publishes", t->warmup_publishes);
  json_put_uint(w, "publishes", t->publishes);
  json_put_uint(w, "deliveries", t->deliveries);
  json_put_uint(w, "copies", t->distributions);
  json_put_double(w, "copies_per_publish", t->copies);
  json_close_object(w);
}

static void put_needs(struct json_writer *w, const struct needs *n) {
  json_open_object(w, "needs");
  json_put_uint(w, "connections", n->connections);
  json_put_uint(w, "workers", n->workers);
  json_put_uint(w, "open_files_per_worker", n->worker_descriptors);
  json_put_uint(w, "open_files_allowed", n->nofile_hard);
  json_put_uint(w, "source_addresses", n->source_addresses);
  json_put_uint(w, "target_addresses", n->target_addresses);
  json_put_uint(w, "source_ports_per_pair", n->source_ports);
  json_put_uint(w, "generator_bytes", n->accounting_bytes);
  json_put_uint(w, "kernel_bytes", n->kernel_bytes);
  json_put_uint(w, "server_bytes", n->server_bytes);
  if (n->available_bytes == UINT64_MAX) {
    json_put_null(w, "available_bytes");
  } else {
    json_put_uint(w, "available_bytes", n->available_bytes);
  }
  json_close_object(w);
}

static void print_json(const struct plan_page *page, const struct err *refusal) {
  struct json_writer writer = {.file = stdout};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_text(w, "document", "plan");
  json_put_uint(w, "schema_version", 1);
  report_json_tool(w);
  json_put_text(w, "driver", page->driver->name);
  json_put_text(w, "target", page->workload->target);
  report_json_workload(w, page->workload);
  put_traffic(w, &page->totals);
  put_needs(w, &page->needs);
  json_open_array(w, "do_first");
  for (uint32_t i = 0; i < page->changes; i++)
    json_put_text(w, NULL, page->change[i]);
  json_close_array(w);
  json_put_bool(w, "fits", page->fits);
  json_put_text(w, "refusal", page->fits ? NULL : refusal->text);
  json_close_object(w);
  putchar('\n');
}

static int print_plan(struct run_arguments *arguments) {
  const struct workload *workload = &arguments->workload;
  struct err err = {0};
  struct plan_page page = {.arguments = arguments, .workload = workload};
  bool json = session_prints_json(arguments);
  if (arguments->output || (arguments->json && !json)) {
    err_set(&err, STATUS_USAGE, "a plan is printed and not saved: give --json -");
    return complain(&err);
  }
  if (session_driver(arguments, &page.driver, &err) != STATUS_OK) return complain(&err);
  if (check_workload(workload, page.driver, &err) != STATUS_OK) return complain(&err);
  estimate_totals(workload, settings_capabilities(workload, page.driver), &page.totals);
  if (check_needs(workload, page.driver, &page.needs, &err) != STATUS_OK) return complain(&err);
  find_changes(&page);
  page.fits = run_check(workload, page.driver, &err) == STATUS_OK;
  if (json) {
    print_json(&page, &err);
  } else {
    print_page(&page);
  }
  int code = finish_stdout(EXIT_VALID);
  return page.fits || code != EXIT_VALID ? code : complain(&err);
}

static int help_plan(void) {
  puts("Usage: muster plan WORKLOAD|PRESET|FILE.yaml [options of `muster run`] [--json -]\n\n"
       "Says what the run would do, and what it would ask of this machine: connections, open files, memory and\n"
       "settings of the kernel. Nothing is started and nothing connected. --json - prints it as JSON.\n\n"
       "`muster help run all` lists the options of a run.\n"
       "Exit codes: 0 this machine can carry it, 2 usage, or it cannot.");
  return finish_stdout(EXIT_VALID);
}

int command_plan(int argc, char **argv) {
  struct run_arguments arguments;
  struct err err = {0};
  int code;
  if (run_arguments_parse(argc, argv, &arguments, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (arguments.help) {
    code = help_plan();
  } else {
    code = print_plan(&arguments);
  }
  run_arguments_free(&arguments);
  return code;
}

/* --- muster scenarios --- */

static void print_scaled(const struct scenario *scenario) {
  const char *before = "--scale multiplies ";
  for (uint32_t i = 0; i < scenario->entries; i++) {
    if (strcmp(scenario->entry[i].section, "scaled") != 0) continue;
    printf("%s%s", before, scenario->entry[i].value);
    before = ", ";
  }
}

static enum status print_preset(struct run_arguments *arguments, struct err *err) {
  const struct workload *w = &arguments->workload;
  const struct driver *driver;
  struct totals totals;
  enum status status = session_driver(arguments, &driver, err);
  if (status != STATUS_OK) return status;
  estimate_totals(w, settings_capabilities(w, driver), &totals);
  printf("%-20s %s\n", w->name, scenario_find(&arguments->scenario, "", "title")->value);
  printf("%-20s %s connections, %s publishes, %s copies, %s deliveries\n%-20s ", "", count(workload_online(w)).text,
      count(totals.publishes).text, count(totals.distributions).text, count(totals.deliveries).text, "");
  print_scaled(&arguments->scenario);
  printf("\n");
  return STATUS_OK;
}

int command_scenarios(int argc, char **argv) {
  (void)argc;
  (void)argv;
  for (const struct preset *preset = presets; preset->name; preset++) {
    char name[64];
    char *words[] = {name};
    struct run_arguments arguments;
    struct err err = {0};
    snprintf(name, sizeof name, "%s", preset->name);
    enum status status = run_arguments_parse(1, words, &arguments, &err);
    if (status == STATUS_OK) status = print_preset(&arguments, &err);
    run_arguments_free(&arguments);
    if (status != STATUS_OK) return complain(&err);
  }
  printf(
      "\n`muster plan NAME` says what one asks of this machine, `muster run NAME` runs it; both take the options of\n"
      "`muster run`, which override the file's, and files of your own: docs/scenarios.md.\n");
  return finish_stdout(EXIT_VALID);
}
