/* A saved search, as far as its text needs it: the mirror of find_write.c. */
#include "load/find.h"
#include "report/json_reader.h"

#include <jansson.h>
#include <string.h>

#define READ(node, fields, out) json_read_fields(node, fields, sizeof(fields) / sizeof((fields)[0]), out)

static void read_clock(const struct json_node *figures, const char *name, struct find_clock *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(I64, struct find_clock, p50_ns)},
      {JSON_FIELD(I64, struct find_clock, p99_ns)},
      {JSON_FIELD_AS("p99_has_few_samples", BOOL, struct find_clock, few)},
  };
  struct json_node node = json_nullable_object_at(figures, name);
  if (!node.value) return;
  out->known = true;
  READ(&node, fields, out);
}

static void read_figures(const struct json_node *step, struct find_step *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct find_step, length_s)},
      {JSON_FIELD(DOUBLE, struct find_step, deliveries_per_second)},
      {JSON_FIELD_AS("worker_busy_share", DOUBLE, struct find_step, busy_share)},
      {JSON_FIELD(U64, struct find_step, lost)},
  };
  struct json_node node = json_nullable_object_at(step, "figures");
  if (!node.value) return;
  out->has_report = true;
  READ(&node, fields, out);
  read_clock(&node, "ack", &out->ack);
  read_clock(&node, "delivery", &out->delivery);
  read_clock(&node, "schedule_lag", &out->schedule_lag);
}

static void read_step(const struct json_node *node, struct find_step *out) {
  static const char *const outcomes[] = {
      [SEARCH_HELD] = "held", [SEARCH_BROKEN] = "broken", [SEARCH_INVALID] = "invalid"};
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct find_step, load)},
      {JSON_FIELD_AS("rate_per_second", DOUBLE, struct find_step, rate_per_sec)},
      {JSON_FIELD(U32, struct find_step, clients)},
      {JSON_FIELD_OR_NULL("why", CHARS, struct find_step, why)},
  };
  struct json_node outcome = json_member(node, "outcome");
  out->outcome = (enum search_outcome)json_choice_of(&outcome, outcomes, sizeof outcomes / sizeof *outcomes);
  READ(node, fields, out);
  read_figures(node, out);
}

static uint32_t read_steps(const struct json_node *root, const char *key, struct find_step *out, size_t most) {
  struct json_node list = json_array_at(root, key, most);
  for (size_t i = 0; i < json_length(&list); i++) {
    struct json_node item = json_item(&list, i);
    read_step(&item, &out[i]);
  }
  return (uint32_t)json_length(&list);
}

static void read_loads(const struct json_node *root, struct search *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct search_load, load)},
      {JSON_FIELD(U32, struct search_load, held)},
      {JSON_FIELD(U32, struct search_load, broken)},
  };
  struct json_node list = json_array_at(root, "loads", SEARCH_LOADS_MAX);
  out->loads = (uint32_t)json_length(&list);
  for (uint32_t i = 0; i < out->loads; i++) {
    struct json_node item = json_item(&list, i);
    READ(&item, fields, &out->load[i]);
  }
}

static void read_result(const struct json_node *root, struct find *out) {
  static const char *const varies[] = {[FIND_RATE] = "rate", [FIND_CLIENTS] = "clients"};
  static const struct json_field fields[] = {
      {JSON_FIELD_OR_NULL("highest_held", DOUBLE, struct search, held)},
      {JSON_FIELD_OR_NULL("lowest_broken", DOUBLE, struct search, broken)},
  };
  struct json_node result = json_object_at(root, "result"), search = json_object_at(root, "search");
  struct json_node text = json_member(&result, "text"), vary = json_member(&search, "vary");
  READ(&result, fields, &out->search);
  json_chars_of(&text, out->told, sizeof out->told);
  out->settings.vary = (enum find_vary)json_choice_of(&vary, varies, sizeof varies / sizeof *varies);
}

enum status find_from_document(const struct document *document, struct find *out, struct err *err) {
  struct arena texts = {0};
  struct json_reader reader = {.file = document->name, .texts = &texts, .err = err};
  struct json_node root = json_root(&reader, document->root), version = json_member(&root, "schema_version");
  *out = (struct find){0};
  if (json_uint_of(&version, UINT32_MAX) != FIND_SCHEMA_VERSION) {
    json_refuse(&version, "this muster reads searches of version %d only", FIND_SCHEMA_VERSION);
  }
  out->settings.subject = document->kind == DOCUMENT_CALIBRATE ? FIND_GENERATOR : FIND_SERVER;
  read_result(&root, out);
  read_loads(&root, &out->search);
  out->steps = read_steps(&root, "steps", out->step, FIND_TESTS_MAX);
  out->shares = read_steps(&root, "below_capacity", out->share, FIND_SHARES);
  arena_free(&texts);
  return reader.status;
}
