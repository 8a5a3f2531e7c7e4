#include "load/search.h"

#include <math.h>
#include <string.h>

#define GROWTH 2

enum status search_start(struct search *search, const struct search_settings *settings, struct err *err) {
  *search = (struct search){.settings = *settings};
  if (!(settings->from > 0) || !(settings->to >= settings->from) || !isfinite(settings->to)) {
    return err_set(err, STATUS_USAGE, "search from %g to %g: the first must be above 0 and not above the second",
        settings->from, settings->to);
  }
  if (!(settings->resolution >= 0.001 && settings->resolution <= 0.5)) {
    return err_set(err, STATUS_USAGE, "a resolution of %g %%: give one from 0.1%% to 50%%", settings->resolution * 100);
  }
  if (!(settings->step >= 0) || (settings->step > 0 && (settings->to - settings->from) / settings->step > 100000)) {
    return err_set(err, STATUS_USAGE, "steps of %g from %g to %g are too many: take larger ones", settings->step,
        settings->from, settings->to);
  }
  if (settings->whole_numbers && (settings->from != floor(settings->from) || settings->to != floor(settings->to) ||
                                     settings->step != floor(settings->step))) {
    return err_set(err, STATUS_USAGE, "a search over counts needs whole numbers for from, to and step");
  }
  if (settings->tests_max == 0) return err_set(err, STATUS_USAGE, "a search needs at least one test");
  return STATUS_OK;
}

/* --- what the tests so far say --- */

/* Indices into search->load; -1: there is none. */
struct view_of_tests {
  int lowest_broken, highest_held; /* of all loads with such a test, mixed ones too */
  int held, broken;                /* the sides of the answer */
};

static struct view_of_tests view_tests(const struct search *search) {
  struct view_of_tests view = {-1, -1, -1, -1};
  for (int i = 0; i < (int)search->loads; i++) {
    if (search->load[i].broken && view.lowest_broken < 0) view.lowest_broken = i;
    if (search->load[i].held) view.highest_held = i;
  }
  for (int i = 0; i < (int)search->loads; i++) {
    const struct search_load *load = &search->load[i];
    bool nothing_broken_below = view.lowest_broken < 0 || i < view.lowest_broken;
    if (load->held && nothing_broken_below) view.held = i;
    if (load->broken && i > view.highest_held && view.broken < 0) view.broken = i;
  }
  return view;
}

static double load_at(const struct search *search, int index) {
  return search->load[index].load;
}

/* --- the next step --- */

static double climb_from(const struct search_settings *settings, double load) {
  double next = settings->step > 0 ? load + settings->step : load * GROWTH;
  return next < settings->to ? next : settings->to;
}

static bool is_wide(const struct search_settings *settings, double low, double high) {
  if (settings->whole_numbers && high - low <= 1) return false;
  return high - low > settings->resolution * high;
}

/* The geometric middle, rounded to four digits for the reader where the gap has room for it. */
static double middle(const struct search_settings *settings, double low, double high) {
  double mid = sqrt(low * high);
  double unit = settings->whole_numbers ? 1 : pow(10, floor(log10(mid)) - 3);
  double rounded = round(mid / unit) * unit;
  if (rounded > low && rounded < high) return rounded;
  return settings->whole_numbers ? low + 1 : mid;
}

static bool short_step(struct search_step *step, double load) {
  *step = (struct search_step){.load = load};
  return true;
}

/* Another test of a side of the answer, until it has enough of them. */
static bool confirm(const struct search *search, int index, bool side_held, struct search_step *step) {
  if (index < 0) return false;
  const struct search_load *load = &search->load[index];
  uint32_t tests = side_held ? load->held : load->broken;
  bool full = side_held ? load->held_full : load->broken_full;
  if (tests >= SEARCH_CONFIRMATIONS && full) return false;
  *step = (struct search_step){.load = load->load, .full_length = !full};
  return true;
}

/* Climbs on when no load is known to break for good. */
static bool climb(const struct search *search, const struct view_of_tests *view, struct search_step *step) {
  const struct search_settings *settings = &search->settings;
  if (view->highest_held < 0 && view->lowest_broken < 0) return short_step(step, settings->from);
  if (view->broken >= 0 || view->highest_held < 0) return false;
  double top = load_at(search, view->highest_held);
  return top < settings->to && short_step(step, climb_from(settings, top));
}

/* Halves the gap on each side: from what holds to the first that broke, from the last that held to what breaks. They
 * are the same gap unless loads between the sides are mixed. */
static bool narrow(const struct search *search, const struct view_of_tests *view, struct search_step *step) {
  const struct search_settings *settings = &search->settings;
  if (view->held >= 0 && view->lowest_broken >= 0) {
    double low = load_at(search, view->held), high = load_at(search, view->lowest_broken);
    if (is_wide(settings, low, high)) return short_step(step, middle(settings, low, high));
  }
  if (view->broken >= 0 && view->highest_held >= 0) {
    double low = load_at(search, view->highest_held), high = load_at(search, view->broken);
    if (is_wide(settings, low, high)) return short_step(step, middle(settings, low, high));
  }
  return false;
}

static bool choose(const struct search *search, struct search_step *step) {
  struct view_of_tests view = view_tests(search);
  return climb(search, &view, step) || narrow(search, &view, step) || confirm(search, view.held, true, step) ||
         confirm(search, view.broken, false, step);
}

bool search_next(const struct search *search, struct search_step *step) {
  return search->end == SEARCH_GOES_ON && choose(search, step);
}

/* --- feeding --- */

static struct search_load *entry_of(struct search *search, double load) {
  uint32_t at = 0;
  while (at < search->loads && search->load[at].load < load)
    at++;
  if (at < search->loads && search->load[at].load == load) return &search->load[at];
  if (search->loads == SEARCH_LOADS_MAX) return NULL;
  memmove(&search->load[at + 1], &search->load[at], (search->loads - at) * sizeof search->load[0]);
  search->loads++;
  search->load[at] = (struct search_load){.load = load};
  return &search->load[at];
}

static void count(struct search *search, struct search_load *load, enum search_outcome outcome, bool full_length) {
  switch (outcome) {
  case SEARCH_HELD:
    load->held++;
    load->held_full |= full_length;
    break;
  case SEARCH_BROKEN:
    load->broken++;
    load->broken_full |= full_length;
    break;
  case SEARCH_INVALID:
    load->invalid++;
    break;
  }
  search->invalid_in_a_row = outcome == SEARCH_INVALID ? search->invalid_in_a_row + 1 : 0;
}

static void note_answer(struct search *search) {
  struct view_of_tests view = view_tests(search);
  search->held = view.held < 0 ? 0 : load_at(search, view.held);
  search->broken = view.broken < 0 ? 0 : load_at(search, view.broken);
}

static enum search_end end_of(const struct search *search) {
  struct search_step step;
  if (search->invalid_in_a_row > SEARCH_INVALID_RETRIES_MAX) return SEARCH_STAYED_INVALID;
  if (choose(search, &step)) return search->tests >= search->settings.tests_max ? SEARCH_TESTS_SPENT : SEARCH_GOES_ON;
  if (search->held == 0) return SEARCH_NONE_HELD;
  if (search->broken > 0) return SEARCH_FOUND;
  return view_tests(search).lowest_broken < 0 ? SEARCH_ALL_HELD : SEARCH_TOP_MIXED;
}

void search_feed(struct search *search, enum search_outcome outcome) {
  struct search_step step;
  if (!search_next(search, &step)) return;
  struct search_load *load = entry_of(search, step.load);
  search->tests++;
  if (!load) {
    search->end = SEARCH_TESTS_SPENT;
    return;
  }
  count(search, load, outcome, step.full_length);
  if (outcome == SEARCH_INVALID) search->invalid_at = step.load;
  note_answer(search);
  search->end = end_of(search);
}
