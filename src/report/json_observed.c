#include "report/observed.h"

#include <math.h>

static void write_rows(struct json_writer *w, const struct report_observed *observed) {
  const double *value = observed->value;
  json_open_array(w, "rows");
  for (uint32_t row = 0; row < observed->rows; row++) {
    json_open_flat_array(w, NULL);
    for (uint32_t i = 0; i <= observed->columns; i++)
      json_put_double(w, NULL, *value++);
    json_close_array(w);
  }
  json_close_array(w);
}

static void write_one(struct json_writer *w, const struct report_observed *observed) {
  json_open_object(w, NULL);
  json_put_text(w, "source", observed->source);
  json_put_text(w, "role", observed_role_name(observed->role));
  json_put_text(w, "label", observed->label);
  json_put_text(w, "error", observed->error[0] ? observed->error : NULL);
  json_put_double(w, "interval_s", observed->interval_s);
  json_open_flat_array(w, "columns");
  for (uint32_t i = 0; i < observed->columns; i++)
    json_put_text(w, NULL, observed->column[i]);
  json_close_array(w);
  write_rows(w, observed);
  json_close_object(w);
}

void observed_write_json(struct json_writer *w, const struct report *report) {
  json_open_array(w, "observed");
  for (uint32_t i = 0; i < report->observations; i++)
    write_one(w, &report->observed[i]);
  json_close_array(w);
}
