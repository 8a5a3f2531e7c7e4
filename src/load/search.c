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

enum search_outcome search_side(const struct search_load *load) {
  uint32_t held = load->held, broken = load->broken;
  if (held > 0 && broken > 0 && load->held_full + load->broken_full > 0) {
    held = load->held_full;
    broken = load->broken_full;
  }
  if (held > broken) return SEARCH_HELD;
  return broken > held && broken >= SEARCH_BREAKS_MIN ? SEARCH_BROKEN : SEARCH_INVALID;
}

/* Indices into search->load; -1: there is none. All loads up to held held, and all from broken on broke. */
struct view_of_tests {
  int held, broken;
  int open; /* tested, and on no side yet */
};

static struct view_of_tests view_tests(const struct search *search) {
  struct view_of_tests view = {-1, -1, -1};
  for (int i = 0; i < (int)search->loads; i++) {
    const struct search_load *load = &search->load[i];
    enum search_outcome side = search_side(load);
    if (side == SEARCH_HELD) view.held = i;
    if (side == SEARCH_BROKEN && view.broken < 0) view.broken = i;
    if (side == SEARCH_INVALID && load->held + load->broken > 0) view.open = i;
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

/* Tests a load on that is on no side, as long as its tests were. */
static bool settle(const struct search *search, int index, struct search_step *step) {
  if (index < 0) return false;
  const struct search_load *load = &search->load[index];
  *step = (struct search_step){.load = load->load, .full_length = load->held_full + load->broken_full > 0};
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

/* Climbs on when no load is known to break. */
static bool climb(const struct search *search, const struct view_of_tests *view, struct search_step *step) {
  const struct search_settings *settings = &search->settings;
  if (view->broken >= 0) return false;
  if (view->held < 0) return short_step(step, settings->from);
  double top = load_at(search, view->held);
  return top < settings->to && short_step(step, climb_from(settings, top));
}

/* Halves the gap between the sides. */
static bool narrow(const struct search *search, const struct view_of_tests *view, struct search_step *step) {
  if (view->held < 0 || view->broken < 0) return false;
  double low = load_at(search, view->held), high = load_at(search, view->broken);
  return is_wide(&search->settings, low, high) && short_step(step, middle(&search->settings, low, high));
}

static bool choose(const struct search *search, struct search_step *step) {
  struct view_of_tests view = view_tests(search);
  return settle(search, view.open, step) || climb(search, &view, step) || narrow(search, &view, step) ||
         confirm(search, view.held, true, step) || confirm(search, view.broken, false, step);
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
    load->held_full += full_length;
    break;
  case SEARCH_BROKEN:
    load->broken++;
    load->broken_full += full_length;
    break;
  default:
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
  return search->broken > 0 ? SEARCH_FOUND : SEARCH_ALL_HELD;
}

static enum search_outcome without_doubt(struct search_load *load, enum search_outcome outcome) {
  if (outcome != SEARCH_DOUBTFUL) return outcome;
  return ++load->doubtful > SEARCH_DOUBTS_FORGIVEN ? SEARCH_BROKEN : SEARCH_INVALID;
}

enum search_outcome search_feed(struct search *search, enum search_outcome outcome) {
  struct search_step step;
  if (!search_next(search, &step)) return outcome;
  struct search_load *load = entry_of(search, step.load);
  search->tests++;
  if (!load) {
    search->end = SEARCH_TESTS_SPENT;
    return outcome;
  }
  bool doubtful = outcome == SEARCH_DOUBTFUL;
  uint32_t in_a_row = search->invalid_in_a_row;
  outcome = without_doubt(load, outcome);
  count(search, load, outcome, step.full_length);
  if (doubtful && outcome == SEARCH_INVALID) search->invalid_in_a_row = in_a_row; /* each load has its own */
  if (outcome == SEARCH_INVALID) search->invalid_at = step.load;
  note_answer(search);
  search->end = end_of(search);
  return outcome;
}
