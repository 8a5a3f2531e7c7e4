#include "report/observed.h"

#include <jansson.h>
#include <stdlib.h>

#define SOURCES_MAX 4096
#define COLUMNS_MAX 4096
#define ROWS_MAX 10000000

static void read_columns(const struct json_node *columns, struct report_observed *out) {
  uint32_t count = (uint32_t)json_length(columns);
  out->column = calloc(count ? count : 1, sizeof *out->column);
  if (!out->column) {
    json_refuse(columns, "out of memory");
    return;
  }
  out->columns = count;
  for (uint32_t i = 0; i < count; i++) {
    struct json_node item = json_item(columns, i);
    json_chars_of(&item, out->column[i], sizeof out->column[i]);
  }
}

static void read_row(const struct json_node *row, uint32_t width, double *value) {
  if (!json_is_array(row->value) || json_length(row) != width) {
    json_refuse(row, "a list of a time and %u values is expected here", width - 1);
    return;
  }
  for (uint32_t i = 0; i < width; i++) {
    struct json_node item = json_item(row, i);
    value[i] = json_signed_of(&item);
  }
}

/* Every row is as wide as the columns say before room is made for all of them. */
static void read_rows(const struct json_node *rows, struct report_observed *out) {
  uint32_t width = out->columns + 1;
  size_t count = json_length(rows);
  for (size_t i = 0; i < count; i++) {
    struct json_node row = json_item(rows, i);
    if (json_length(&row) != width) json_refuse(&row, "a list of a time and %u values is expected here", width - 1);
  }
  if (rows->reader->status != STATUS_OK) return;
  out->value = calloc(count ? count : 1, width * sizeof *out->value);
  if (!out->value) {
    json_refuse(rows, "out of memory");
    return;
  }
  out->rows = (uint32_t)count;
  for (uint32_t i = 0; i < out->rows; i++) {
    struct json_node row = json_item(rows, i);
    read_row(&row, width, &out->value[(size_t)i * width]);
  }
}

static void read_one(const struct json_node *node, struct report_observed *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report_observed, source)},
      {JSON_FIELD(CHARS, struct report_observed, label)},
      {JSON_FIELD_OR_NULL("error", CHARS, struct report_observed, error)},
      {JSON_FIELD(DOUBLE, struct report_observed, interval_s)},
  };
  const char *roles[OBSERVED_OTHER + 1];
  for (int i = 0; i <= OBSERVED_OTHER; i++)
    roles[i] = observed_role_name((enum observed_role)i);
  struct json_node role = json_member(node, "role"), columns = json_array_at(node, "columns", COLUMNS_MAX);
  out->role = (enum observed_role)json_choice_of(&role, roles, sizeof roles / sizeof roles[0]);
  json_read_fields(node, fields, sizeof fields / sizeof fields[0], out);
  read_columns(&columns, out);
  struct json_node rows = json_array_at(node, "rows", ROWS_MAX);
  read_rows(&rows, out);
}

void observed_read_json(const struct json_node *root, struct report *report) {
  if (!root->value || !json_object_get(root->value, "observed")) return;
  struct json_node list = json_array_at(root, "observed", SOURCES_MAX);
  uint32_t count = (uint32_t)json_length(&list);
  report->observed = calloc(count ? count : 1, sizeof *report->observed);
  if (!report->observed) {
    json_refuse(&list, "out of memory");
    return;
  }
  report->observations = count;
  for (uint32_t i = 0; i < count; i++) {
    struct json_node item = json_item(&list, i);
    read_one(&item, &report->observed[i]);
  }
}
