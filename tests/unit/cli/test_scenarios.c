#include "base/clock.h"
#include "cli/muster_options.h"
#include "cli/muster_presets.h"
#include "cli/muster_scenario.h"
#include "load/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS_MAX 16

/* Parses words, NULL at the end, as `muster run` would. */
static enum status parse(struct run_arguments *out, struct err *err, const char *first, va_list rest) {
  char *argv[WORDS_MAX];
  int argc = 0;
  for (const char *word = first; word; word = va_arg(rest, const char *))
    argv[argc++] = (char *)(uintptr_t)word;
  return run_arguments_parse(argc, argv, out, err);
}

static struct run_arguments accept(const char *first, ...) {
  struct run_arguments arguments;
  struct err err = {0};
  va_list rest;
  va_start(rest, first);
  enum status status = parse(&arguments, &err, first, rest);
  va_end(rest);
  if (status != STATUS_OK) fail_msg("%s", err.text);
  return arguments;
}

static void refuse(const char *expected, const char *first, ...) {
  struct run_arguments arguments;
  struct err err = {0};
  va_list rest;
  va_start(rest, first);
  assert_int_equal(parse(&arguments, &err, first, rest), STATUS_USAGE);
  va_end(rest);
  if (!strstr(err.text, expected)) fail_msg("\"%s\" does not say \"%s\"", err.text, expected);
  run_arguments_free(&arguments);
}

static char file[] = "/tmp/test_scenarios_XXXXXX.yaml";

static void write_file(const char *text) {
  FILE *out = fopen(file, "w");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

#define HEAD "name: small\ntitle: A small one\ndriver: juggle\n"

/* text follows three lines of head; expected follows the file's name. */
static void refuse_file(const char *text, const char *expected) {
  char whole[1024], message[512];
  snprintf(whole, sizeof whole, HEAD "%s", text);
  snprintf(message, sizeof message, "%s%s", file, expected);
  write_file(whole);
  refuse(message, file, NULL);
}

static void test_options_of_a_file(void **state) {
  (void)state;
  write_file(HEAD "population: {clients: 1k}\n"
                  "arrivals: {rate: 2.5k, arrivals: poisson, seed: 7}\n"
                  "payload: {payload-bytes: 128, plain: true, store-messages: false}\n"
                  "stop: {duration: 1m30s}\n"
                  "phases: {warmup: 500ms}\n"
                  "server: {ack: received, rate-limits: \"on\"}\n"
                  "labels: {environment: two words}\n");
  struct run_arguments a = accept(file, NULL);
  assert_string_equal(a.workload.name, "small");
  assert_string_equal(a.workload.driver, "juggle");
  assert_int_equal(a.workload.topology, TOPOLOGY_RING);
  assert_int_equal(a.workload.clients, 1000);
  assert_true(a.workload.rate_per_sec == 2500);
  assert_int_equal(a.workload.arrivals, ARRIVALS_POISSON);
  assert_int_equal(a.workload.seed, 7);
  assert_int_equal(a.workload.payload_bytes, 128);
  assert_false(a.workload.obfuscate);
  assert_false(a.workload.store);
  assert_true(a.workload.count);
  assert_int_equal(a.workload.duration_ns, 90 * NS_PER_SEC);
  assert_int_equal(a.workload.warmup_ns, 500 * NS_PER_MS);
  assert_string_equal(a.workload.ack_policy, "received");
  assert_true(a.workload.rate_limits);
  assert_string_equal(a.workload.environment_label, "two words");
  run_arguments_free(&a);
}

static void test_errors_have_line_and_column(void **state) {
  (void)state;
  refuse_file("population:\n  clients: many\n",
      ":5:12: population.clients: \"many\" is not a number that fits: give a whole number");
  refuse_file("arrivals:\n  rate: 0\n", ":5:9: arrivals.rate: \"0\" is not a rate that fits");
  refuse_file("stop:\n  duration: 10\n", ":5:13: stop.duration: \"10\" is not a time that fits");
  refuse_file("payload:\n  plain: yes\n", ":5:10: payload.plain: \"yes\" is not true or false");
  refuse_file("arrivals:\n  arrivals: bursty\n", ":5:13: arrivals.arrivals: \"bursty\" is not a word that it knows");
  refuse_file("topology:\n  kind: stars\n", ":5:9: topology.kind: \"stars\" is not a workload");
  refuse_file("scale: 0\n", ":4:8: scale: \"0\" is not a factor that fits");
  refuse_file("population:\n  client: 5\n", ":5:3: unknown key \"client\": did you mean clients?");
  refuse_file("population:\n  frobs: 5\n", ":5:3: unknown key \"frobs\"");
  refuse_file("arrivals:\n  clients: 5\n", ":5:3: key \"clients\" belongs to section \"population\"");
  refuse_file("clients: 5\n", ":4:1: key \"clients\" belongs to section \"population\"");
  refuse_file("stop:\n  scale: 5\n", ":5:3: key \"scale\" belongs to the top level");
  refuse_file("popularity:\n  frobs: 5\n", ":5:3: unknown section \"popularity\"");
  refuse_file(
      "server:\n  allow-non-loopback: true\n", ":5:3: \"allow-non-loopback\" is given on the command line only");
  refuse_file("server:\n  output: x\n", ":5:3: \"output\" is given on the command line only");
  refuse_file("labels:\n  database: |\n    two\n    lines\n", ":5:13: \"database\": a value is one line");
  refuse_file("population: [clients]\n", ":4:14: \"population\" is no list");
  refuse_file("scaled: [duration]\n", ":4:10: scaled: this file gives no \"duration\"");
  refuse_file("scaled: [warmups]\n", ":4:10: scaled: \"warmups\" cannot be scaled");
  refuse_file("scaled: [arrivals]\narrivals: {arrivals: poisson}\n", ":4:10: scaled: \"arrivals\" cannot be scaled");
  refuse_file("expect: {publishes: few}\n", ":4:21: expect.publishes: \"few\" is not a number that fits");
  refuse_file("expect: {messages: 1}\n", ":4:10: expect: unknown key \"messages\"");
  refuse_file("stop:\n  duration: 1s\n  duration: 1s\n", ":6:3: \"duration\" is given twice: also in line 5");
}

static void test_head_of_a_file(void **state) {
  (void)state;
  write_file("title: x\ndriver: juggle\n");
  refuse(":1:1: a scenario needs a name", file, NULL);
  write_file("name: x\ndriver: juggle\n");
  refuse(":1:1: a scenario needs a title", file, NULL);
  write_file("name: x\ntitle: x\n");
  refuse(":1:1: a scenario needs a driver", file, NULL);
  write_file("name: ../x\ntitle: x\ndriver: juggle\n");
  refuse(":1:7: name: \"../x\" is no name", file, NULL);
  write_file("name: x\ntitle: x\ndriver: pigeon\n");
  refuse(":3:9: driver: \"pigeon\" is not a driver", file, NULL);
}

static void test_a_file_that_does_not_fit_itself(void **state) {
  (void)state;
  write_file(HEAD "topology: {kind: star}\npopulation: {clients: 5}\n");
  refuse("--clients belongs to", file, NULL);
}

static void test_expected_totals(void **state) {
  (void)state;
#define SMALL HEAD "population: {clients: 10}\narrivals: {rate: 100}\nstop: {duration: 10s}\n"
  write_file(SMALL "expect: {publishes: 1000, distributions: 2000, deliveries: 1000}\n");
  struct run_arguments a = accept(file, "--rate", "7", "--scale", "0.5", NULL); /* it is about the file alone */
  run_arguments_free(&a);
  write_file(SMALL "expect:\n  publishes: 1001\n");
  refuse(":8:14: expect.publishes: 1001 is said, but this file comes to 1000", file, NULL);
  write_file(SMALL "expect:\n  distributions: 1000\n");
  refuse(":8:18: expect.distributions: 1000 is said, but this file comes to 2000", file, NULL);
  write_file(SMALL "expect:\n  deliveries: 1\n");
  refuse(":8:15: expect.deliveries: 1 is said, but this file comes to 1000", file, NULL);
}

static void test_the_command_line_overrides(void **state) {
  (void)state;
  struct run_arguments a = accept("--rate", "7", "juggle-private", "--payload-bytes", "100", "--ack=received", NULL);
  assert_true(a.workload.rate_per_sec == 7);
  assert_int_equal(a.workload.payload_bytes, 100);
  assert_int_equal(a.workload.clients, 50);
  assert_int_equal(a.workload.warmup_ns, 10 * NS_PER_SEC);
  assert_string_equal(a.workload.ack_policy, "received");
  run_arguments_free(&a);
  write_file(HEAD "server: {rate-limits: \"off\"}\n");
  a = accept(file, "--target", "ws://127.0.0.1:1", NULL); /* what is for the embedded server is not in the way */
  assert_string_equal(a.workload.target, "ws://127.0.0.1:1");
  run_arguments_free(&a);
  refuse("--ack belongs to the embedded musterd", file, "--target", "ws://127.0.0.1:1", "--ack", "durable", NULL);
  refuse("--rounds makes answers or intervals set the pace", "single-send", "--rate", "5", NULL);
}

static void test_scale(void **state) {
  (void)state;
  struct run_arguments a = accept("juggle-private", "--scale", "0.1", NULL);
  assert_int_equal(a.workload.clients, 5);
  assert_true(a.workload.rate_per_sec == 20);
  assert_int_equal(a.workload.duration_ns, 30 * NS_PER_SEC); /* not on the list */
  run_arguments_free(&a);
  a = accept("juggle-private", "--scale", "0.1", "--clients", "33", NULL); /* asked for is asked for */
  assert_int_equal(a.workload.clients, 33);
  assert_true(a.workload.rate_per_sec == 20);
  run_arguments_free(&a);
  a = accept("juggle-private", "--scale", "0.0001", NULL); /* at least the least */
  assert_int_equal(a.workload.clients, 1);
  run_arguments_free(&a);
  write_file(HEAD "scale: 0.5\npopulation: {clients: 11}\nstop: {duration: 3s}\nscaled: [clients, duration]\n");
  a = accept(file, NULL);
  assert_int_equal(a.workload.clients, 5); /* rounded down */
  assert_int_equal(a.workload.duration_ns, 1500 * NS_PER_MS);
  run_arguments_free(&a);
  a = accept(file, "--scale", "2", NULL);
  assert_int_equal(a.workload.clients, 22);
  run_arguments_free(&a);
  write_file(HEAD "population: {clients: 1M}\nscaled: [clients]\n");
  refuse("--scale 1000: clients would be more than it can be", file, "--scale=1000", NULL);
}

/* Small enough for any machine: a chatroom is a population before it is anything else. */
static void test_chatrooms_scale_their_population(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t clients;
  } rooms[] = {{"chatroom-1000", 22}, {"chatroom-2000", 42}, {"chatroom-5000", 102}};
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    struct run_arguments a = accept(rooms[i].name, "--scale", "0.02", NULL);
    assert_int_equal(a.workload.clients, rooms[i].clients);
    assert_int_equal(a.workload.senders, 2);
    assert_int_equal(a.workload.rounds, 100);
    run_arguments_free(&a);
  }
}

/* As `muster ricochet -protocol X` without another word. */
static void test_ricochet_presets_have_the_originals_defaults(void **state) {
  (void)state;
  static const char *const names[] = {"msa", "maa", "sda", "sfa", "sca", "mma", "mixed", "sda-batch", "msa-batch",
      "sync-cold", "sync-warm", "sync-noop"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char preset[40];
    bool syncs = strncmp(names[i], "sync-", 5) == 0;
    snprintf(preset, sizeof preset, "ricochet-%s", names[i]);
    struct run_arguments a = accept(preset, NULL);
    const struct workload *l = &a.workload;
    assert_string_equal(l->operations, names[i]);
    assert_string_equal(l->driver, "ricochet");
    assert_int_equal(l->load, LOAD_CLOSED);
    assert_int_equal(l->outstanding, 1);
    assert_int_equal(l->clients, syncs ? 1 : 10);
    assert_int_equal(l->warmup_requests, syncs ? 1 : 10);
    assert_int_equal(l->payload_bytes, 1024);
    assert_int_equal(l->batch_size, 100);
    assert_int_equal(l->documents, 500);
    assert_int_equal(l->warmup_ns, 0);
    run_arguments_free(&a);
  }
}

static void test_words_that_name_nothing(void **state) {
  (void)state;
  refuse("did you mean group-1000?", "group-10000", NULL);
  refuse("a preset (`muster scenarios`)", "frobnicate", NULL);
  refuse("cannot open ./nowhere.yaml", "./nowhere.yaml", NULL);
  refuse("one workload at a time", "group-100", "group-200", NULL);
  refuse("--scale belongs to scenarios", "private", "--scale", "0.5", NULL);
}

/* The vendors' published totals (protocols' fact sheets); 0: none was published. */
static const struct published {
  const char *name;
  uint64_t publishes, distributions, deliveries, connections;
} published[] = {
    {"c1000k", 0, 0, 0, 1000000},
    {"chatroom-1000", 10000, 10000 * (1000 + 100), 0, 0},
    {"chatroom-2000", 10000, 10000 * (2000 + 100), 0, 0},
    {"chatroom-5000", 10000, 10000 * (5000 + 100), 0, 0},
    {"group-100", 100000, 10000000, 0, 0},
    {"group-1000", 20000, 20000000, 0, 0},
    {"group-200", 100000, 20000000, 0, 0},
    {"juggle-group", 6000, 0, 6000 * 49, 0},
    {"juggle-private", 6000, 0, 6000, 0},
    {"ricochet-maa", 1000, 0, 0, 0},
    {"ricochet-mixed", 1000, 0, 0, 0},
    {"ricochet-mma", 1000, 0, 0, 0},
    {"ricochet-msa", 1000, 0, 0, 0},
    {"ricochet-msa-batch", 1000, 0, 0, 0},
    {"ricochet-sca", 1000, 0, 0, 0},
    {"ricochet-sda", 1000, 0, 0, 0},
    {"ricochet-sda-batch", 1000, 0, 0, 0},
    {"ricochet-sfa", 1000, 0, 0, 0},
    {"ricochet-sync-cold", 10, 0, 0, 0},
    {"ricochet-sync-noop", 10, 0, 0, 0},
    {"ricochet-sync-warm", 10, 0, 0, 0},
    {"shootout-broadcast", 20, 0, 20 * 5000, 0},
    {"shootout-echo", 10000, 0, 10000, 0},
    {"single-send", 10000000, 20000000, 10000, 0},
    {"single-send-receive", 10000000, 20000000, 10000000, 0},
};

static const struct published *find_published(const char *name) {
  for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
    if (strcmp(published[i].name, name) == 0) return &published[i];
  }
  return NULL;
}

static void test_presets_come_to_the_published_totals(void **state) {
  (void)state;
  size_t seen = 0;
  for (const struct preset *preset = presets; preset->name; preset++) {
    const struct published *expected = find_published(preset->name);
    struct run_arguments a = accept(preset->name, NULL);
    struct totals totals;
    assert_string_equal(a.workload.name, preset->name);
    estimate_totals(&a.workload, 0, &totals);
    assert_true(totals.known);
    if (!expected) { /* our own, for a protocol whose field has published no test */
      run_arguments_free(&a);
      continue;
    }
    assert_int_equal(totals.publishes, expected->publishes);
    if (expected->distributions) assert_int_equal(totals.distributions, expected->distributions);
    if (expected->deliveries) assert_int_equal(totals.deliveries, expected->deliveries);
    if (expected->connections) assert_int_equal(workload_online(&a.workload), expected->connections);
    assert_true(a.expected.publishes == expected->publishes);
    run_arguments_free(&a);
    seen++;
  }
  assert_int_equal(seen, sizeof published / sizeof published[0]);
}

static int make_file(void **state) {
  (void)state;
  int fd = mkstemps(file, 5);
  return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
  (void)state;
  return unlink(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_of_a_file),
      cmocka_unit_test(test_errors_have_line_and_column),
      cmocka_unit_test(test_head_of_a_file),
      cmocka_unit_test(test_a_file_that_does_not_fit_itself),
      cmocka_unit_test(test_expected_totals),
      cmocka_unit_test(test_the_command_line_overrides),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_chatrooms_scale_their_population),
      cmocka_unit_test(test_ricochet_presets_have_the_originals_defaults),
      cmocka_unit_test(test_words_that_name_nothing),
      cmocka_unit_test(test_presets_come_to_the_published_totals),
  };
  return cmocka_run_group_tests_name("scenarios", tests, make_file, remove_file);
}
