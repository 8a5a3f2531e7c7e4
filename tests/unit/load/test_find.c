/* Searches over made-up runs: what a report says about server and generator, lengths of steps, errors, interrupts. */
#include "load/find.h"

#include "base/clock.h"
#include "unit/report/sample.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct workload workload_of_sample(void) {
  struct report report = sample_valid();
  struct workload workload = report.workload;
  report_free(&report);
  return workload;
}

static enum search_outcome judged(enum find_subject subject, struct report *report, const char *objectives, char *why) {
  struct slo_list list = {0};
  if (objectives) assert_int_equal(slo_parse(objectives, &list, NULL), STATUS_OK);
  report_judge(report);
  slo_judge(&list, report);
  return find_judge(subject, report, why);
}

static void judges_server_and_generator_apart(void **state) {
  (void)state;
  char why[256];
  struct report report = sample_valid();
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99<2ms", why), SEARCH_HELD);
  assert_string_equal(why, "");
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99<500us", why), SEARCH_BROKEN);
  assert_string_equal(why, "ack.p99<500us: 1 ms");
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99.9<1s", why), SEARCH_INVALID);
  assert_non_null(strstr(why, "cannot be judged"));
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99.9<1s,lost>0", why), SEARCH_BROKEN);

  /* A machine that was taken away for 2 %: what held did so all the same, what broke is in doubt. */
  report.worker[0].clock_gap_ns = (uint64_t)(report.measure_s * 0.02e9);
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99<2ms", why), SEARCH_HELD);
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99<500us", why), SEARCH_DOUBTFUL);
  assert_string_equal(why, "ack.p99<500us: 1 ms (doubtful: 2.0 % clock gaps)");
  report.worker[0].clock_gap_ns = 0;

  codes_add(&report.measure.connections.dropped, CAUSE_RESET, 2);
  assert_int_equal(judged(FIND_SERVER, &report, NULL, why), SEARCH_BROKEN);
  assert_non_null(strstr(why, "dropped"));
  assert_int_equal(judged(FIND_GENERATOR, &report, NULL, why), SEARCH_INVALID);

  report.worker[0].busy_share = 0.99; /* now nothing can be said of the server, broken objectives or not */
  assert_int_equal(judged(FIND_SERVER, &report, "ack.p99<500us", why), SEARCH_INVALID);
  assert_non_null(strstr(why, "busy"));
  assert_int_equal(judged(FIND_GENERATOR, &report, NULL, why), SEARCH_BROKEN);
  report_free(&report);
}

/* Runs as a server that loses what is asked of it above its capacity. */
struct made_up {
  double capacity;
  uint32_t runs, ended;
  uint32_t interrupt_at; /* run that is interrupted; 0: none */
  enum status error;     /* of runs above the capacity, instead of losses */
  double busy_above;     /* the generator's limit; 0: none */
  uint64_t longest_ns;
};

static enum status run(void *context, const struct workload *workload, struct report *report, struct err *err) {
  struct made_up *server = context;
  server->runs++;
  if (workload->in_flight > 0) {
    assert_int_equal(workload->senders, 4);
    assert_int_equal(workload->outstanding, 1);
  }
  if (workload->duration_ns > server->longest_ns) server->longest_ns = workload->duration_ns;
  double rate = workload->rate_per_sec;
  if (rate > server->capacity && server->error != STATUS_OK) return err_set(err, server->error, "it is gone");
  *report = sample_valid();
  report->workload = *workload;
  report->measure_s = (double)workload->duration_ns / 1e9;
  uint64_t publishes = (uint64_t)(rate * report->measure_s);
  report->measure.publishes.scheduled = report->measure.publishes.attempted = report->measure.publishes.acked =
      publishes;
  report->measure.connections.attempted = report->measure.connections.established = workload->clients;
  report->measure.deliveries.expected = report->measure.deliveries.observed = publishes;
  if (rate > server->capacity) {
    report->measure.deliveries.observed--;
    report->measure.deliveries.lost++;
  }
  if (server->busy_above > 0 && rate > server->busy_above) report->worker[0].busy_share = 1;
  report->interrupted = server->interrupt_at == server->runs;
  report_judge(report);
  struct slo_list list = {0};
  assert_int_equal(slo_parse("lost=0", &list, NULL), STATUS_OK);
  slo_judge(&list, report);
  return STATUS_OK;
}

static void ended(void *context, const struct find_step *step) {
  struct made_up *server = context;
  server->ended++;
  assert_true(step->outcome == SEARCH_HELD ? step->why[0] == '\0' : step->why[0] != '\0');
}

static struct find_settings settings_of(const struct workload *workload, struct made_up *server) {
  return (struct find_settings){
      .vary = FIND_RATE,
      .subject = FIND_SERVER,
      .search = {.from = 100, .to = 100000, .resolution = 0.05, .tests_max = FIND_TESTS_MAX},
      .workload = workload,
      .short_ns = NS_PER_SEC,
      .full_ns = 4 * NS_PER_SEC,
      .run = run,
      .ended = ended,
      .context = server,
  };
}

static struct find *found(struct made_up *server) {
  struct workload workload = workload_of_sample();
  struct find_settings settings = settings_of(&workload, server);
  struct find *find = calloc(1, sizeof *find);
  struct err err = {0};
  if (find_run(find, &settings, &err) != STATUS_OK) fail_msg("%s", err.text);
  assert_int_equal(find->steps, server->ended);
  return find;
}

static char *answer(const struct find *find) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  assert_int_equal(find_write_answer(file, find, NULL), STATUS_OK);
  fclose(file);
  return text;
}

static char *text_of(const struct find *find) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  assert_int_equal(find_write_text(file, find, NULL), STATUS_OK);
  fclose(file);
  return text;
}

/* A saved search says the same as the one that was carried out. */
static void assert_saved(struct find *find, const struct workload *workload) {
  char *json = NULL;
  size_t len = 0;
  struct document document;
  struct err err = {0};
  struct find *back = calloc(1, sizeof *back);
  FILE *file = open_memstream(&json, &len);
  find->settings.workload = workload;
  assert_int_equal(find_write_json(file, find, &err), STATUS_OK);
  fclose(file);
  assert_int_equal(document_parse("a.json", json, len, &document, &err), STATUS_OK);
  if (find_from_document(&document, back, &err) != STATUS_OK) fail_msg("%s", err.text);
  char *text = text_of(find), *again = text_of(back);
  assert_string_equal(again, text);
  free(text);
  free(again);
  free(back);
  free(json);
  document_free(&document);
}

static void saved_searches_print_the_same(void **state) {
  (void)state;
  struct workload workload = workload_of_sample();
  struct made_up servers[] = {{.capacity = 4321}, {.capacity = 1e9}, {.capacity = 50},
      {.capacity = 1e9, .busy_above = 900}, {.capacity = 900, .error = STATUS_UNREACHABLE}};
  for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
    struct find *find = found(&servers[i]);
    assert_saved(find, &workload);
    free(find);
  }
}

static void finds_a_capacity(void **state) {
  (void)state;
  struct made_up server = {.capacity = 4321};
  struct find *find = found(&server);
  assert_int_equal(find->search.end, SEARCH_FOUND);
  assert_true(find->search.held <= 4321 && find->search.broken > 4321);
  assert_int_equal(find_exit_code(find), 0);
  assert_true(server.longest_ns == 4 * NS_PER_SEC);
  char *text = answer(find);
  assert_non_null(strstr(text, "capacity    between 4"));
  assert_non_null(strstr(text, "lost=0: 1"));
  free(text);
  free(find);
}

static void names_a_limited_generator(void **state) {
  (void)state;
  struct made_up server = {.capacity = 4321, .busy_above = 1000};
  struct find *find = found(&server);
  assert_int_equal(find->search.end, SEARCH_STAYED_INVALID);
  assert_int_equal(find_exit_code(find), 3);
  assert_true(find->search.broken == 0);
  char *text = answer(find);
  assert_non_null(strstr(text, "the generator or its"));
  free(text);
  free(find);
}

static void takes_a_server_that_is_gone_for_broken(void **state) {
  (void)state;
  struct made_up server = {.capacity = 4321, .error = STATUS_UNREACHABLE};
  struct find *find = found(&server);
  assert_int_equal(find->search.end, SEARCH_FOUND);
  assert_true(find->search.held <= 4321 && find->search.broken > 4321);
  free(find);

  server = (struct made_up){.capacity = 4321, .error = STATUS_MEMORY}; /* ours: says nothing */
  find = found(&server);
  assert_int_equal(find->search.end, SEARCH_STAYED_INVALID);
  free(find);

  server = (struct made_up){.capacity = 50, .error = STATUS_UNREACHABLE}; /* never there: no search at all */
  struct workload workload = workload_of_sample();
  struct find_settings settings = settings_of(&workload, &server);
  find = calloc(1, sizeof *find);
  struct err err = {0};
  assert_int_equal(find_run(find, &settings, &err), STATUS_UNREACHABLE);
  assert_string_equal(err.text, "it is gone");
  free(find);
}

static void an_interrupt_ends_it_without_an_answer(void **state) {
  (void)state;
  struct made_up server = {.capacity = 4321, .interrupt_at = 4};
  struct find *find = found(&server);
  assert_int_equal(server.runs, 4);
  assert_true(find->interrupted && find->search.held == 400);
  assert_int_equal(find_exit_code(find), 3);
  char *text = answer(find);
  assert_non_null(strstr(text, "interrupted after 3 tests"));
  free(text);
  free(find);
}

static void keeps_what_is_in_flight_when_clients_grow(void **state) {
  (void)state;
  struct made_up server = {.capacity = 1e9};
  struct workload workload = workload_of_sample();
  workload.clients = 4; /* so that at first all send */
  workload.in_flight = 4;
  workload_share_in_flight(&workload);
  struct find_settings settings = settings_of(&workload, &server);
  settings.vary = FIND_CLIENTS;
  settings.search.from = 4;
  settings.search.to = 32;
  settings.search.whole_numbers = true;
  struct find *find = calloc(1, sizeof *find);
  assert_int_equal(find_run(find, &settings, NULL), STATUS_OK);
  assert_int_equal(find->search.end, SEARCH_ALL_HELD);
  assert_int_equal(find->step[find->steps - 1].clients, 32);
  free(find);
}

static void lengthens_steps_for_their_percentiles(void **state) {
  (void)state;
  struct made_up server = {.capacity = 1e9};
  struct workload workload = workload_of_sample();
  struct find_settings settings = settings_of(&workload, &server);
  struct slo_list objectives = {0};
  assert_int_equal(slo_parse("delivery.p99<1s,connect.p99<1s,lost=0", &objectives, NULL), STATUS_OK);
  settings.objectives = &objectives;
  assert_true(find_length_ns(&settings, 100, false) > 10 * NS_PER_SEC);
  assert_true(find_length_ns(&settings, 100, false) < 11 * NS_PER_SEC);
  assert_true(find_length_ns(&settings, 10000, false) == NS_PER_SEC);
  assert_true(find_length_ns(&settings, 10000, true) == 4 * NS_PER_SEC);
  settings.search.from = 1;
  struct find *find = calloc(1, sizeof *find);
  struct err err = {0};
  assert_int_equal(find_run(find, &settings, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "would have to last"));
  free(find);
}

static void refuses_counts_that_no_percentile_can_come_of(void **state) {
  (void)state;
  struct made_up server = {.capacity = 1e9};
  struct workload workload = workload_of_sample();
  workload.publishes = 100;
  struct find_settings settings = settings_of(&workload, &server);
  struct slo_list objectives = {0};
  assert_int_equal(slo_parse("ack.p95<1s", &objectives, NULL), STATUS_OK);
  settings.objectives = &objectives;
  struct find *find = calloc(1, sizeof *find);
  struct err err = {0};
  assert_int_equal(find_run(find, &settings, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "ack.p95<1s needs 200 values, but each step ends after 100 publishes"));
  assert_int_equal(server.runs, 0);
  free(find);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(judges_server_and_generator_apart),
      cmocka_unit_test(saved_searches_print_the_same),
      cmocka_unit_test(finds_a_capacity),
      cmocka_unit_test(names_a_limited_generator),
      cmocka_unit_test(takes_a_server_that_is_gone_for_broken),
      cmocka_unit_test(an_interrupt_ends_it_without_an_answer),
      cmocka_unit_test(keeps_what_is_in_flight_when_clients_grow),
      cmocka_unit_test(lengthens_steps_for_their_percentiles),
      cmocka_unit_test(refuses_counts_that_no_percentile_can_come_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
