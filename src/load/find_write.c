/* What a search says: a table while it goes on, the answer as a sentence, everything as JSON. */
#include "load/find.h"
#include "report/json_parts.h"
#include "report/json_writer.h"
#include "report/layout.h"
#include "report/save.h"

#include <inttypes.h>
#include <string.h>

static const char *const outcome_names[] = {
    [SEARCH_HELD] = "held", [SEARCH_BROKEN] = "broken", [SEARCH_INVALID] = "invalid"};

static const char *const end_names[] = {
    [SEARCH_GOES_ON] = "interrupted",
    [SEARCH_FOUND] = "found",
    [SEARCH_NONE_HELD] = "none_held",
    [SEARCH_ALL_HELD] = "all_held",
    [SEARCH_STAYED_INVALID] = "stayed_invalid",
    [SEARCH_TESTS_SPENT] = "tests_spent",
};

static const char *unit_of(const struct find_settings *settings) {
  return settings->vary == FIND_RATE ? "publishes/s" : "clients";
}

/* --- text --- */

void find_write_head(FILE *file, const struct find_settings *settings) {
  fprintf(file, "%4s %11s %8s %7s  %-7s %10s %10s %8s  %s\n", "test", "publishes/s", "clients", "length", "verdict",
      settings->subject == FIND_SERVER ? "p50 ms" : "lag p50", settings->subject == FIND_SERVER ? "p99 ms" : "lag p99",
      "lost", "why");
}

static void format_ms(char out[16], const struct find_clock *clock, int64_t ns, bool few) {
  if (!clock->known) {
    snprintf(out, 16, "-");
  } else {
    snprintf(out, 16, "%.2f%s", (double)ns / 1e6, few ? "*" : "");
  }
}

/* What the table shows of a step: deliveries, or the ACKs of a load without any, or the generator's own lag. */
static const struct find_clock *shown_clock(const struct find_settings *settings, const struct find_step *step) {
  if (settings->subject == FIND_GENERATOR) return &step->schedule_lag;
  return step->delivery.known ? &step->delivery : &step->ack;
}

void find_write_step(FILE *file, const struct find_settings *settings, uint32_t number, const struct find_step *step) {
  char p50[16], p99[16], rate[24];
  const struct find_clock *clock = shown_clock(settings, step);
  format_ms(p50, clock, clock->p50_ns, false);
  format_ms(p99, clock, clock->p99_ns, clock->few);
  snprintf(rate, sizeof rate, "%.6g", step->rate_per_sec);
  fprintf(file, "%4" PRIu32 " %11s %8" PRIu32 " %6.1fs  %-7s %10s %10s %8" PRIu64 "  %s\n", number, rate, step->clients,
      step->length_s, outcome_names[step->outcome], p50, p99, step->lost, step->why);
}

static const struct search_load *load_of(const struct search *search, double load) {
  for (uint32_t i = 0; i < search->loads; i++) {
    if (search->load[i].load == load) return &search->load[i];
  }
  return NULL;
}

static void tests_of(char out[64], const struct search *search, double load, enum search_outcome side) {
  const struct search_load *entry = load_of(search, load);
  if (!entry) {
    out[0] = '\0';
    return;
  }
  snprintf(out, 64, "%" PRIu32 " of %" PRIu32 " tests", side == SEARCH_HELD ? entry->held : entry->broken,
      entry->held + entry->broken);
}

/* The last step at a load that came out that way. */
static const struct find_step *step_at(const struct find *find, double load, enum search_outcome outcome) {
  for (uint32_t i = find->steps; i > 0; i--) {
    const struct find_step *step = &find->step[i - 1];
    if (step->load == load && step->outcome == outcome) return step;
  }
  return NULL;
}

static const char *why_at(const struct find *find, double load, enum search_outcome outcome) {
  const struct find_step *step = step_at(find, load, outcome);
  return step ? step->why : "";
}

static void sentence_found(char *out, size_t size, const struct find *find) {
  const struct search *search = &find->search;
  char held[64], broken[64];
  tests_of(held, search, search->held, SEARCH_HELD);
  tests_of(broken, search, search->broken, SEARCH_BROKEN);
  snprintf(out, size, "between %g and %g %s: %g held in %s, %g broke in %s (%s)", search->held, search->broken,
      unit_of(&find->settings), search->held, held, search->broken, broken,
      why_at(find, search->broken, SEARCH_BROKEN));
}

static void sentence_invalid(char *out, size_t size, const struct find *find) {
  const struct search *search = &find->search;
  const struct find_step *step = step_at(find, search->invalid_at, SEARCH_INVALID);
  bool generator = step && step->generator_limited && find->settings.subject == FIND_SERVER;
  snprintf(out, size, "no answer: at %g %s %s, %d times in a row (%s). %g held%s", search->invalid_at,
      unit_of(&find->settings),
      generator ? "the generator or its machine, not the server, was the limit" : "the test could not be judged",
      SEARCH_INVALID_RETRIES_MAX + 1, step ? step->why : "", search->held,
      generator ? ". Give the generator more workers, cores or a machine of its own" : "");
}

static void sentence(char *out, size_t size, const struct find *find) {
  const struct search *search = &find->search;
  const char *unit = unit_of(&find->settings);
  if (find->told[0]) {
    snprintf(out, size, "%s", find->told);
    return;
  }
  if (find->interrupted) {
    snprintf(out, size, "no answer: interrupted after %" PRIu32 " tests; %g %s held so far", search->tests,
        search->held, unit);
    return;
  }
  switch (search->end) {
  case SEARCH_FOUND:
    sentence_found(out, size, find);
    break;
  case SEARCH_NONE_HELD:
    snprintf(out, size, "none: not even %g %s held for good (%s)", find->settings.search.from, unit,
        why_at(find, find->settings.search.from, SEARCH_BROKEN));
    break;
  case SEARCH_ALL_HELD:
    snprintf(
        out, size, "at least %g %s: nothing up to there broke it; raise --to to find its limit", search->held, unit);
    break;
  case SEARCH_STAYED_INVALID:
    sentence_invalid(out, size, find);
    break;
  default:
    snprintf(out, size, "no answer within %" PRIu32 " tests: %g %s held so far, %g broke", search->tests, search->held,
        unit, search->broken);
    break;
  }
}

static void format_clock(char out[96], const char *name, const struct find_clock *clock) {
  out[0] = '\0';
  if (!clock->known) return;
  snprintf(out, 96, "; %s p50 %.3g ms, p99 %.3g ms%s", name, (double)clock->p50_ns / 1e6, (double)clock->p99_ns / 1e6,
      clock->few ? " (few values)" : "");
}

static void write_latencies(FILE *file, const struct find_step *step) {
  char delivery[96], ack[96];
  format_clock(delivery, "delivery", &step->delivery);
  format_clock(ack, "ack", &step->ack);
  page_text(file, "", "at %g: %.0f deliveries/s%s%s; busiest worker %.0f %%", step->load, step->deliveries_per_second,
      delivery, ack, step->busy_share * 100);
}

static void write_at_held(FILE *file, const struct find *find) {
  const struct find_step *step = step_at(find, find->search.held, SEARCH_HELD);
  if (step) write_latencies(file, step);
  for (uint32_t i = find->shares; i > 0; i--) {
    if (find->share[i - 1].has_report) write_latencies(file, &find->share[i - 1]);
  }
}

/* Loads that did not always do the same: there subject or machine were random, and how often it held says how much. */
static void write_mixed(FILE *file, const struct find *find) {
  const struct search *search = &find->search;
  for (uint32_t i = 0; i < search->loads; i++) {
    const struct search_load *load = &search->load[i];
    if (load->held == 0 || load->broken == 0) continue;
    page_text(file, "", "%g %s held in %" PRIu32 " of %" PRIu32 " tests", load->load, unit_of(&find->settings),
        load->held, load->held + load->broken);
  }
}

enum status find_write_answer(FILE *file, const struct find *find, struct err *err) {
  char text[1024];
  sentence(text, sizeof text, find);
  fputc('\n', file);
  page_text(file, find->settings.subject == FIND_SERVER ? "capacity" : "ceiling", "%s", text);
  write_at_held(file, find);
  write_mixed(file, find);
  return save_flush(file, "result", err);
}

enum status find_write_text(FILE *file, const struct find *find, struct err *err) {
  find_write_head(file, &find->settings);
  for (uint32_t i = 0; i < find->steps; i++)
    find_write_step(file, &find->settings, i + 1, &find->step[i]);
  for (uint32_t i = 0; i < find->shares; i++)
    find_write_step(file, &find->settings, find->steps + i + 1, &find->share[i]);
  return find_write_answer(file, find, err);
}

/* --- JSON --- */

static void put_positive(struct json_writer *w, const char *key, double value) {
  if (value > 0) {
    json_put_double(w, key, value);
  } else {
    json_put_null(w, key);
  }
}

static void write_search(struct json_writer *w, const struct find *find) {
  const struct find_settings *settings = &find->settings;
  json_open_object(w, "search");
  json_put_text(w, "vary", settings->vary == FIND_RATE ? "rate" : "clients");
  json_put_double(w, "from", settings->search.from);
  json_put_double(w, "to", settings->search.to);
  put_positive(w, "step_size", settings->search.step);
  json_put_double(w, "resolution", settings->search.resolution);
  json_put_double(w, "short_length_s", (double)settings->short_ns / 1e9);
  json_put_double(w, "full_length_s", (double)settings->full_ns / 1e9);
  json_put_uint(w, "confirmations", SEARCH_CONFIRMATIONS);
  json_put_uint(w, "tests_max", settings->search.tests_max);
  json_open_array(w, "objectives");
  for (uint32_t i = 0; settings->objectives && i < settings->objectives->count; i++)
    json_put_text(w, NULL, settings->objectives->slo[i].text);
  json_close_array(w);
  json_close_object(w);
}

static void write_result(struct json_writer *w, const struct find *find) {
  char text[1024];
  const struct search *search = &find->search;
  sentence(text, sizeof text, find);
  json_open_object(w, "result");
  json_put_text(w, "end", end_names[find->interrupted ? SEARCH_GOES_ON : search->end]);
  json_put_text(w, "unit", find->settings.vary == FIND_RATE ? "publishes_per_second" : "clients");
  put_positive(w, "highest_held", search->held);
  put_positive(w, "lowest_broken", search->broken);
  put_positive(w, "invalid_at", search->end == SEARCH_STAYED_INVALID ? search->invalid_at : 0);
  json_put_uint(w, "tests", search->tests);
  json_put_text(w, "text", text);
  json_close_object(w);
}

static void write_loads(struct json_writer *w, const struct search *search) {
  json_open_array(w, "loads");
  for (uint32_t i = 0; i < search->loads; i++) {
    json_open_object(w, NULL);
    json_put_double(w, "load", search->load[i].load);
    json_put_uint(w, "held", search->load[i].held);
    json_put_uint(w, "broken", search->load[i].broken);
    json_put_uint(w, "invalid", search->load[i].invalid);
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_clock_json(struct json_writer *w, const char *key, const struct find_clock *clock) {
  if (!clock->known) {
    json_put_null(w, key);
    return;
  }
  json_open_object(w, key);
  json_put_int(w, "p50_ns", clock->p50_ns);
  json_put_int(w, "p99_ns", clock->p99_ns);
  json_put_bool(w, "p99_has_few_samples", clock->few);
  json_close_object(w);
}

static void write_figures(struct json_writer *w, const struct find *find, const struct find_step *step) {
  json_open_object(w, "figures");
  json_put_double(w, "length_s", step->length_s);
  json_put_double(w, "attempts_per_second", step->attempts_per_second);
  if (find->has_acks) {
    json_put_double(w, "acks_per_second", step->acks_per_second);
  } else {
    json_put_null(w, "acks_per_second");
  }
  json_put_double(w, "deliveries_per_second", step->deliveries_per_second);
  json_put_uint(w, "rejected", step->rejected);
  json_put_uint(w, "timed_out", step->timed_out);
  json_put_uint(w, "unsent", step->unsent);
  json_put_uint(w, "lost", step->lost);
  json_put_uint(w, "dropped", step->dropped);
  json_put_double(w, "worker_busy_share", step->busy_share);
  write_clock_json(w, "ack", &step->ack);
  write_clock_json(w, "delivery", &step->delivery);
  write_clock_json(w, "schedule_lag", &step->schedule_lag);
  report_json_objectives(w, step->objective, step->objectives);
  json_close_object(w);
}

static void write_steps(
    struct json_writer *w, const struct find *find, const char *key, const struct find_step *steps, uint32_t count) {
  json_open_array(w, key);
  for (uint32_t i = 0; i < count; i++) {
    const struct find_step *step = &steps[i];
    json_open_object(w, NULL);
    json_put_text(w, "run_id", step->has_report ? step->run_id : NULL);
    json_put_double(w, "load", step->load);
    json_put_double(w, "rate_per_second", step->rate_per_sec);
    json_put_uint(w, "clients", step->clients);
    json_put_bool(w, "full_length", step->full_length);
    json_put_text(w, "outcome", outcome_names[step->outcome]);
    json_put_text(w, "why", step->why[0] ? step->why : NULL);
    if (step->has_report) {
      write_figures(w, find, step);
    } else {
      json_put_null(w, "figures");
    }
    json_close_object(w);
  }
  json_close_array(w);
}

enum status find_write_json(FILE *file, const void *content, struct err *err) {
  const struct find *find = content;
  struct json_writer writer = {.file = file};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_text(w, "kind", find->settings.subject == FIND_SERVER ? "find" : "calibrate");
  json_put_uint(w, "schema_version", FIND_SCHEMA_VERSION);
  json_put_text(w, "id", find->id);
  report_json_tool(w);
  json_put_text(w, "started_at", find->started_at);
  write_result(w, find);
  write_search(w, find);
  write_loads(w, &find->search);
  write_steps(w, find, "steps", find->step, find->steps);
  write_steps(w, find, "below_capacity", find->share, find->shares);
  report_json_workload(w, find->settings.workload);
  report_json_target(w, &find->target);
  report_json_environment(w, &find->environment);
  json_close_object(w);
  fputc('\n', file);
  return save_flush(file, "result", err);
}
