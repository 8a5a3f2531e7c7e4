/* The search against made-up servers in virtual time: sharp ones, noisy ones, hopeless ones. */
#include "load/search.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Holds below its knee. noise: the knee of each test lies within +-noise of it, evenly. */
struct server {
  double knee, noise;
  double false_breaks;  /* share of tests that break whatever the load */
  double doubtful;      /* share of tests that the machine breaks, and is seen to */
  double invalid_above; /* the generator cannot do more; 0: it can */
  double invalid_share; /* of tests that go wrong by chance */
  struct rng rng;
  uint32_t full_tests;
};

static double chance(struct server *server) {
  return (double)rng_below(&server->rng, 1000001) / 1000000;
}

static enum search_outcome test(struct server *server, const struct search_step *step) {
  if (step->full_length) server->full_tests++;
  if (server->invalid_above > 0 && step->load > server->invalid_above) return SEARCH_INVALID;
  if (server->invalid_share > 0 && chance(server) < server->invalid_share) return SEARCH_INVALID;
  if (server->doubtful > 0 && chance(server) < server->doubtful) return SEARCH_DOUBTFUL;
  if (server->false_breaks > 0 && chance(server) < server->false_breaks) return SEARCH_BROKEN;
  double knee = server->knee * (1 + server->noise * (2 * chance(server) - 1));
  return step->load < knee ? SEARCH_HELD : SEARCH_BROKEN;
}

static struct search_settings settings_of(double from, double to) {
  return (struct search_settings){.from = from, .to = to, .resolution = 0.05, .tests_max = 60};
}

static struct search run(const struct search_settings *settings, struct server *server) {
  struct search search;
  struct search_step step;
  struct err err = {0};
  if (search_start(&search, settings, &err) != STATUS_OK) fail_msg("%s", err.text);
  while (search_next(&search, &step)) {
    assert_true(step.load >= settings->from && step.load <= settings->to);
    search_feed(&search, test(server, &step));
    assert_true(search.tests <= settings->tests_max);
  }
  assert_int_not_equal(search.end, SEARCH_GOES_ON);
  return search;
}

static const struct search_load *load_of(const struct search *search, double load) {
  for (uint32_t i = 0; i < search->loads; i++) {
    if (search->load[i].load == load) return &search->load[i];
  }
  fail_msg("no such load: %g", load);
  return NULL;
}

/* Both sides are there, tested enough, and every load is on the side where it lies. */
static void assert_confirmed(const struct search *search) {
  const struct search_load *held = load_of(search, search->held), *broken = load_of(search, search->broken);
  assert_true(held->held >= 2 && held->held_full && search_side(held) == SEARCH_HELD);
  assert_true(broken->broken >= 2 && broken->broken_full && search_side(broken) == SEARCH_BROKEN);
  for (uint32_t i = 0; i < search->loads; i++) {
    const struct search_load *load = &search->load[i];
    assert_int_equal(search_side(load), load->load <= search->held ? SEARCH_HELD : SEARCH_BROKEN);
  }
}

static void finds_every_knee(void **state) {
  (void)state;
  for (int i = 0; i < 254; i++) {
    double knee = 101 * pow(1.037, i); /* up to nearly a million */
    struct server server = {.knee = knee};
    struct search_settings settings = settings_of(100, 1e6);
    struct search search = run(&settings, &server);
    assert_int_equal(search.end, SEARCH_FOUND);
    assert_true(search.held < knee && search.broken >= knee);
    assert_true(search.broken - search.held <= 0.05 * search.broken);
    assert_confirmed(&search);
    assert_true(search.tests <= 32);
    assert_int_equal(server.full_tests, 2);
  }
}

static void finds_counts_to_the_last_one(void **state) {
  (void)state;
  for (int knee = 3; knee <= 200; knee++) {
    struct server server = {.knee = knee};
    struct search_settings settings = settings_of(2, 1000);
    settings.whole_numbers = true;
    settings.resolution = 0.001;
    struct search search = run(&settings, &server);
    assert_int_equal(search.end, SEARCH_FOUND);
    assert_true(search.held == knee - 1 && search.broken == knee);
    for (uint32_t i = 0; i < search.loads; i++)
      assert_true(search.load[i].load == floor(search.load[i].load));
  }
}

static void climbs_by_steps(void **state) {
  (void)state;
  struct server server = {.knee = 470};
  struct search_settings settings = settings_of(100, 10000);
  settings.step = 100;
  struct search search = run(&settings, &server);
  for (int i = 1; i <= 5; i++)
    load_of(&search, 100 * i);
  assert_int_equal(search.end, SEARCH_FOUND);
  assert_true(search.held < 470 && search.broken >= 470);
}

/* A held load may lie above the middle of the knee only as far as noise can carry it, a broken one only so far below.
 */
static void never_excludes_the_truth(void **state) {
  (void)state;
  uint32_t found = 0;
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    struct server server = {.noise = (double)(seed % 20) / 100};
    rng_seed(&server.rng, seed);
    server.knee = 200 + (double)rng_below(&server.rng, 500000);
    struct search_settings settings = settings_of(100, 1e6);
    struct search search = run(&settings, &server);
    if (search.held > 0) assert_true(search.held < server.knee * (1 + server.noise));
    if (search.broken > 0) assert_true(search.broken >= server.knee * (1 - server.noise));
    if (search.held > 0 && search.broken > 0) assert_true(search.held < search.broken);
    if (search.end != SEARCH_FOUND) continue;
    found++;
    assert_confirmed(&search);
  }
  assert_true(found > 1900);
}

/* How many of 100 searches end within the resolution of the truth: one step of it on either side. */
static uint32_t found_near(const struct server *like) {
  uint32_t near = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct server server = *like;
    rng_seed(&server.rng, seed);
    server.knee = 200 + (double)rng_below(&server.rng, 500000);
    struct search_settings settings = settings_of(100, 1e6);
    settings.tests_max = 100;
    struct search search = run(&settings, &server);
    if (search.held > 0) assert_true(search.held < server.knee); /* nothing holds above the knee */
    near += search.end == SEARCH_FOUND && search.held >= server.knee * (1 - 2 * settings.resolution) &&
            search.broken <= server.knee * (1 + settings.resolution);
  }
  return near;
}

static void false_breaks_do_not_hold_the_answer_down(void **state) {
  (void)state;
  assert_in_range(found_near(&(struct server){.false_breaks = 0.1}), 95, 100);
  assert_in_range(found_near(&(struct server){.false_breaks = 0.05, .doubtful = 0.1}), 95, 100);
}

/* A machine that is disturbed by the load itself: what breaks is in doubt each time, and still an answer. */
static void doubts_that_come_back_are_breaks(void **state) {
  (void)state;
  struct search_settings settings = settings_of(100, 1e6);
  struct search search;
  struct search_step step;
  assert_int_equal(search_start(&search, &settings, NULL), STATUS_OK);
  while (search_next(&search, &step)) {
    bool first = true;
    for (uint32_t i = 0; i < search.loads; i++)
      first &= search.load[i].load != step.load;
    enum search_outcome counted = search_feed(&search, step.load < 5000 ? SEARCH_HELD : SEARCH_DOUBTFUL);
    assert_int_equal(counted, step.load < 5000 ? SEARCH_HELD : first ? SEARCH_INVALID : SEARCH_BROKEN);
  }
  assert_int_equal(search.end, SEARCH_FOUND);
  assert_true(search.held < 5000 && search.broken >= 5000);
  assert_int_equal(load_of(&search, search.broken)->invalid, 1);
  assert_confirmed(&search);
}

static void repeats_itself_for_the_same_noise(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct server once = {.knee = 31415, .noise = 0.1, .invalid_share = 0.1}, again = once;
    rng_seed(&once.rng, seed);
    rng_seed(&again.rng, seed);
    struct search_settings settings = settings_of(100, 1e6);
    struct search first = run(&settings, &once), second = run(&settings, &again);
    assert_int_equal(first.tests, second.tests);
    assert_true(first.held == second.held && first.broken == second.broken);
  }
}

static void ends_on_a_server_that_throws_dice(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 500; seed++) {
    struct server server = {.knee = 5000, .noise = 0.99};
    rng_seed(&server.rng, seed);
    struct search_settings settings = settings_of(100, 1e6);
    settings.resolution = 0.001;
    run(&settings, &server);
  }
}

static void tells_when_all_or_nothing_holds(void **state) {
  (void)state;
  struct search_settings settings = settings_of(100, 1000);
  struct server strong = {.knee = 5000}, weak = {.knee = 50};
  struct search search = run(&settings, &strong);
  assert_int_equal(search.end, SEARCH_ALL_HELD);
  assert_true(search.held == 1000 && search.broken == 0);
  assert_true(load_of(&search, 1000)->held >= 2);
  search = run(&settings, &weak);
  assert_int_equal(search.end, SEARCH_NONE_HELD);
  assert_true(search.held == 0 && search.broken == 100);
  assert_true(load_of(&search, 100)->broken >= 2);
  settings = settings_of(700, 700);
  strong.knee = 701;
  assert_int_equal(run(&settings, &strong).end, SEARCH_ALL_HELD);
}

static void a_limited_generator_is_no_answer(void **state) {
  (void)state;
  struct search_settings settings = settings_of(100, 1e6);
  struct server server = {.knee = 50000, .invalid_above = 10000};
  struct search search = run(&settings, &server);
  assert_int_equal(search.end, SEARCH_STAYED_INVALID);
  assert_true(search.invalid_at > 10000 && search.held <= 10000 && search.broken == 0);
  assert_int_equal(load_of(&search, search.invalid_at)->invalid, 1 + SEARCH_INVALID_RETRIES_MAX);

  server = (struct server){.knee = 50000, .invalid_share = 0.1};
  uint32_t found = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    rng_seed(&server.rng, seed);
    search = run(&settings, &server);
    if (search.end != SEARCH_FOUND) continue;
    found++;
    assert_true(search.held < 50000 && search.broken >= 50000);
  }
  assert_true(found > 80); /* what goes wrong by chance is repeated */

  server = (struct server){.knee = 1e9, .invalid_above = 1};
  search = run(&settings, &server);
  assert_int_equal(search.end, SEARCH_STAYED_INVALID);
  assert_int_equal(search.tests, 1 + SEARCH_INVALID_RETRIES_MAX);
  assert_true(search.held == 0 && search.broken == 0 && search.invalid_at == 100);
}

/* Feeds the outcomes given as h, b and i, and then what a server with that knee says. */
static struct search scripted(const char *outcomes, double knee) {
  struct search_settings settings = settings_of(100, 1600);
  struct search search;
  struct search_step step;
  assert_int_equal(search_start(&search, &settings, NULL), STATUS_OK);
  while (search_next(&search, &step)) {
    char c = *outcomes ? *outcomes++ : step.load < knee ? 'h' : 'b';
    search_feed(&search, c == 'h' ? SEARCH_HELD : c == 'b' ? SEARCH_BROKEN : SEARCH_INVALID);
  }
  return search;
}

static void one_break_is_not_believed(void **state) {
  (void)state;
  /* 100 h, 200 b, 200 h, 200 h: best of three, and the climb goes on. */
  struct search search = scripted("hbhh", 300);
  assert_int_equal(search.end, SEARCH_FOUND);
  const struct search_load *mixed = load_of(&search, 200);
  assert_true(mixed->broken == 1 && mixed->held == 2);
  assert_true(search.held >= 200 && search.held < 300 && search.broken >= 300);
  assert_confirmed(&search);

  /* 100 h, 200 b twice: broken, until at full length it holds more often than not. */
  search = scripted("hbb", 300);
  assert_int_equal(search.end, SEARCH_FOUND);
  mixed = load_of(&search, 200);
  assert_true(mixed->broken == 2 && mixed->held_full >= 1);
  assert_true(search.held >= 200 && search.held < 300 && search.broken >= 300);
  assert_confirmed(&search);

  search = scripted("hhhhhb", 1e9); /* 1600 holds, breaks once when it is confirmed, and holds twice */
  assert_int_equal(search.end, SEARCH_ALL_HELD);
  assert_true(search.held == 1600 && search.broken == 0);
  assert_int_equal(load_of(&search, 1600)->broken, 1);

  search = scripted("ihhibiih", 300); /* invalid tests are repeated where they stood */
  assert_int_equal(search.end, SEARCH_FOUND);
  assert_true(search.held < 300 && search.broken >= 300);

  search = scripted("bhh", 300); /* 100 breaks once, and holds then */
  assert_int_equal(search.end, SEARCH_FOUND);
  search = scripted("bhb", 300); /* ... or does not */
  assert_true(search.end == SEARCH_FOUND && search_side(load_of(&search, 100)) == SEARCH_HELD);
  assert_int_equal(load_of(&search, 100)->broken, 2); /* for the full-length tests count more */
  search = scripted("bhbb", 300);
  assert_int_equal(search.end, SEARCH_FOUND);
}

static void refuses_senseless_settings(void **state) {
  (void)state;
  const struct search_settings good = settings_of(100, 1000);
  struct search_settings bad[8];
  for (int i = 0; i < 8; i++)
    bad[i] = good;
  bad[0].from = 0;
  bad[1].from = 2000;
  bad[2].to = INFINITY;
  bad[3].resolution = 0;
  bad[4].resolution = 0.6;
  bad[5].step = 0.001;
  bad[6].tests_max = 0;
  bad[7].whole_numbers = true;
  bad[7].step = 2.5;
  struct search search;
  assert_int_equal(search_start(&search, &good, NULL), STATUS_OK);
  for (int i = 0; i < 8; i++) {
    struct err err = {0};
    if (search_start(&search, &bad[i], &err) != STATUS_USAGE) fail_msg("settings %d are accepted", i);
    assert_true(err.text[0] && !strchr(err.text, '\n'));
  }
}

static void stops_when_its_tests_are_spent(void **state) {
  (void)state;
  struct search_settings settings = settings_of(1, 1e6);
  settings.tests_max = 5;
  struct server server = {.knee = 5e5};
  struct search search = run(&settings, &server);
  assert_int_equal(search.end, SEARCH_TESTS_SPENT);
  assert_int_equal(search.tests, 5);
  assert_true(search.held == 16 && search.broken == 0);
  struct search_step step;
  assert_false(search_next(&search, &step));
  search_feed(&search, SEARCH_HELD); /* nothing was asked */
  assert_int_equal(search.tests, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_every_knee),
      cmocka_unit_test(finds_counts_to_the_last_one),
      cmocka_unit_test(climbs_by_steps),
      cmocka_unit_test(never_excludes_the_truth),
      cmocka_unit_test(false_breaks_do_not_hold_the_answer_down),
      cmocka_unit_test(doubts_that_come_back_are_breaks),
      cmocka_unit_test(repeats_itself_for_the_same_noise),
      cmocka_unit_test(ends_on_a_server_that_throws_dice),
      cmocka_unit_test(tells_when_all_or_nothing_holds),
      cmocka_unit_test(a_limited_generator_is_no_answer),
      cmocka_unit_test(one_break_is_not_believed),
      cmocka_unit_test(refuses_senseless_settings),
      cmocka_unit_test(stops_when_its_tests_are_spent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
