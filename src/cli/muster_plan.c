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
#include "report/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

struct plan_page {
  const struct run_arguments *arguments;
  const struct workload *workload;
  const struct driver *driver;
  struct totals totals;
  struct needs needs;
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
  page_text(stdout, "sources", "%" PRIu32 " address%s of %s ports", n->source_addresses,
      n->source_addresses == 1 ? "" : "es", count(n->source_ports).text);
  page_text(stdout, "memory", "generator %s, kernel %s%s%s", bytes(n->accounting_bytes).text,
      bytes(n->kernel_bytes).text, n->server_bytes ? ", embedded server " : "",
      n->server_bytes ? bytes(n->server_bytes).text : "");
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

static bool advise(const char *path, const char *name, uint64_t needed) {
  uint64_t value = kernel_setting(path);
  if (value >= needed) return false;
  page_text(stdout, "", "sysctl -w %s=%" PRIu64 "  (is %" PRIu64 ")", name, needed, value);
  return true;
}

/* Commands that this machine needs first. */
static bool print_changes(const struct plan_page *page) {
  const struct needs *n = &page->needs;
  uint64_t in_one = n->worker_descriptors, in_all = n->connections * UINT64_C(2) + 4096;
  bool any = false;
  if (in_one > n->nofile_hard) {
    any = true;
    advise("/proc/sys/fs/nr_open", "fs.nr_open", in_one);
    page_text(stdout, "", "ulimit -n %" PRIu64 "  (is %" PRIu64 ")", in_one, n->nofile_hard);
  }
  any |= advise("/proc/sys/fs/file-max", "fs.file-max", in_all);
  uint64_t backlog = page->workload->connect_concurrency;
  any |= advise("/proc/sys/net/core/somaxconn", "net.core.somaxconn", backlog);
  any |= advise(
      "/proc/sys/net/netfilter/nf_conntrack_max", "net.netfilter.nf_conntrack_max", n->connections + UINT64_C(4096));
  if (n->source_ports * n->source_addresses < n->connections) {
    any = true;
    page_text(stdout, "", "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\", or --local-addr with more addresses");
  }
  return any;
}

static int print_machine(const struct plan_page *page) {
  struct err err = {0};
  page_text(stdout, "do first", "what this machine must be told before, as root:");
  if (!print_changes(page)) page_text(stdout, "", "nothing: its settings do");
  if (run_check(page->workload, page->driver, &err) == STATUS_OK) {
    page_text(stdout, "verdict", "this machine can carry it");
    return finish_stdout(EXIT_VALID);
  }
  finish_stdout(EXIT_VALID);
  return complain(&err);
}

static int print_plan(const struct run_arguments *arguments, struct workload *workload) {
  struct err err = {0};
  struct plan_page page = {.arguments = arguments, .workload = workload};
  if (session_driver(workload, &page.driver, &err) != STATUS_OK) return complain(&err);
  if (check_workload(workload, page.driver, &err) != STATUS_OK) return complain(&err);
  estimate_totals(workload, &page.totals);
  if (check_needs(workload, page.driver, &page.needs, &err) != STATUS_OK) return complain(&err);
  print_title(&page);
  report_write_workload(stdout, workload);
  page_text(stdout, "target", "%s over driver %s", workload->target ? workload->target : "an embedded musterd",
      page.driver->name);
  print_traffic(&page);
  print_bandwidth(&page);
  print_durations(&page);
  print_needs(&page);
  return print_machine(&page);
}

int command_plan(int argc, char **argv) {
  struct run_arguments arguments;
  struct err err = {0};
  int code;
  if (run_arguments_parse(argc, argv, &arguments, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (arguments.help) {
    run_arguments_help(stdout);
    code = finish_stdout(EXIT_VALID);
  } else {
    code = print_plan(&arguments, &arguments.workload);
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

static void print_preset(const struct run_arguments *arguments) {
  const struct workload *w = &arguments->workload;
  struct totals totals;
  estimate_totals(w, &totals);
  printf("%-20s %s\n", w->name, scenario_find(&arguments->scenario, "", "title")->value);
  printf("%-20s %s connections, %s publishes, %s copies, %s deliveries\n%-20s ", "", count(workload_online(w)).text,
      count(totals.publishes).text, count(totals.distributions).text, count(totals.deliveries).text, "");
  print_scaled(&arguments->scenario);
  printf("\n");
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
    if (status == STATUS_OK) print_preset(&arguments);
    run_arguments_free(&arguments);
    if (status != STATUS_OK) return complain(&err);
  }
  printf(
      "\n`muster plan NAME` says what one asks of this machine, `muster run NAME` runs it; both take the options of\n"
      "`muster run`, which override the file's, and files of your own: docs/scenarios.md.\n");
  return finish_stdout(EXIT_VALID);
}
