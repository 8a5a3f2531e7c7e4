#include "report/operations.h"

#include "report/json_parts.h"
#include "report/layout.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *const operation_rate_names[OPERATION_RATES] = {"succeeded_per_second", "items_per_second"};

bool operation_has_rate(const struct operation_name *operation, enum operation_rate rate) {
  return rate != OPERATION_RATE_ITEMS || operation->item;
}

double operations_error_rate(const struct report *report) {
  const struct tally *t = &report->measure;
  uint64_t failed = codes_total(&t->publishes.rejected) + codes_total(&t->publishes.timed_out);
  return t->publishes.attempted > 0 ? (double)failed / (double)t->publishes.attempted : 0;
}

double operations_per_second(const struct report *report, uint64_t all, uint64_t late) {
  return report->measure_s > 0 && all > late ? (double)(all - late) / report->measure_s : 0;
}

const struct report_operation *operations_find(const struct report *report, const char *name) {
  for (uint32_t i = 0; i < report->operations; i++) {
    if (strcmp(report->operation[i].name, name) == 0) return &report->operation[i];
  }
  return NULL;
}

/* --- JSON --- */

static void write_operation(struct json_writer *w, const struct report_operation *operation, const struct report *r) {
  const struct operation_tally *tally = operation->tally;
  struct report_latency latency = report_latency_of(&tally->clock);
  json_open_object(w, NULL);
  json_put_text(w, "name", operation->name);
  json_put_text(w, "item", operation->item);
  json_put_uint(w, "attempted", tally->attempted);
  json_put_uint(w, "succeeded", tally->succeeded);
  json_put_uint(w, "succeeded_late", tally->late);
  report_json_codes(w, "failed", &tally->failed, r);
  json_put_uint(w, "unanswered", operation_unanswered(tally));
  json_put_uint(w, "items", tally->items);
  json_put_uint(w, "items_late", tally->items_late);
  json_put_double(w, "succeeded_per_second", operations_per_second(r, tally->succeeded, tally->late));
  json_put_double(w, "items_per_second", operations_per_second(r, tally->items, tally->items_late));
  report_json_latency(w, "latency", &latency, &tally->clock);
  json_close_object(w);
}

static void write_refusals(struct json_writer *w, const struct refusals *refusals) {
  json_open_array(w, "errors");
  for (uint32_t i = 0; i < refusals->used; i++) {
    json_open_object(w, NULL);
    json_put_text(w, "text", refusals->entry[i].text);
    json_put_uint(w, "count", refusals->entry[i].count);
    json_close_object(w);
  }
  json_close_array(w);
  json_put_uint(w, "further_errors", refusals->others);
}

void operations_write_json(struct json_writer *w, const struct report *report) {
  if (!report->operation) {
    json_put_null(w, "operations");
    return;
  }
  json_open_object(w, "operations");
  json_put_text(w, "scenario", report->workload.operations);
  json_put_uint(w, "batch_size", report->workload.batch_size);
  json_put_uint(w, "documents", report->workload.documents);
  json_put_uint(w, "warmup_requests", report->workload.warmup_requests);
  json_open_array(w, "table");
  for (uint32_t i = 0; i < report->operations; i++)
    write_operation(w, &report->operation[i], report);
  json_close_array(w);
  json_put_double(w, "error_rate", operations_error_rate(report));
  write_refusals(w, report->refusals);
  json_put_uint(w, "retry_hints_honoured", report->retry_hints);
  json_put_double(w, "retry_waited_s", (double)report->retry_waited_ns / 1e9);
  json_close_object(w);
}

void operations_write_key(struct json_writer *w, const struct report *report) {
  const struct workload *l = &report->workload;
  char text[128];
  if (!report->operation) return;
  snprintf(text, sizeof text, "%.40s, batches of %u, %u documents", l->operations ? l->operations : "mixed",
      l->batch_size, l->documents);
  json_put_text(w, "operations", text);
}

static void read_operation(const struct json_node *node, struct report *out) {
  static const struct json_field name_fields[] = {
      {JSON_FIELD(TEXT, struct report_operation, name)},
      {JSON_FIELD_OR_NULL("item", TEXT, struct report_operation, item)},
  };
  static const struct json_field fields[] = {
      {JSON_FIELD(U64, struct operation_tally, attempted)},
      {JSON_FIELD(U64, struct operation_tally, succeeded)},
      {JSON_FIELD_AS("succeeded_late", U64, struct operation_tally, late)},
      {JSON_FIELD(U64, struct operation_tally, items)},
      {JSON_FIELD(U64, struct operation_tally, items_late)},
  };
  struct report_operation *operation = &out->operation[out->operations];
  operation->tally = calloc(1, sizeof *operation->tally);
  if (!operation->tally) {
    json_refuse(node, "out of memory");
    return;
  }
  out->operations++;
  json_read_fields(node, name_fields, sizeof name_fields / sizeof *name_fields, operation);
  json_read_fields(node, fields, sizeof fields / sizeof *fields, operation->tally);
  report_read_codes(node, "failed", &operation->tally->failed, out);
  struct json_node latency = json_object_at(node, "latency");
  if (latency.value) report_read_histogram(&latency, &operation->tally->clock);
}

static void read_refusals(const struct json_node *node, struct report *out) {
  struct json_node list = json_array_at(node, "errors", REFUSALS_MAX), further = json_member(node, "further_errors");
  struct refusals *refusals = out->refusals;
  for (size_t i = 0; i < json_length(&list); i++) {
    struct json_node item = json_item(&list, i), text = json_member(&item, "text"), count = json_member(&item, "count");
    json_chars_of(&text, refusals->entry[i].text, sizeof refusals->entry[i].text);
    refusals->entry[i].count = json_uint_of(&count, INT64_MAX);
    refusals->used++;
  }
  refusals->others = json_uint_of(&further, INT64_MAX);
}

void operations_read_json(const struct json_node *root, struct report *report) {
  static const struct json_field fields[] = {
      {JSON_FIELD_OR_NULL("scenario", TEXT, struct report, workload.operations)},
      {JSON_FIELD_AS("batch_size", U32, struct report, workload.batch_size)},
      {JSON_FIELD_AS("documents", U32, struct report, workload.documents)},
      {JSON_FIELD_AS("warmup_requests", U32, struct report, workload.warmup_requests)},
      {JSON_FIELD_AS("retry_hints_honoured", U64, struct report, retry_hints)},
      {JSON_FIELD_AS("retry_waited_s", SECONDS, struct report, retry_waited_ns)},
  };
  struct json_node node = json_nullable_object_at(root, "operations");
  if (!node.value) return;
  struct json_node table = json_array_at(&node, "table", OPERATIONS_MAX);
  report->operation = calloc(OPERATIONS_MAX, sizeof *report->operation);
  report->refusals = calloc(1, sizeof *report->refusals);
  if (!report->operation || !report->refusals) {
    json_refuse(&node, "out of memory");
    return;
  }
  json_read_fields(&node, fields, sizeof fields / sizeof *fields, report);
  for (size_t i = 0; i < json_length(&table); i++) {
    struct json_node item = json_item(&table, i);
    read_operation(&item, report);
  }
  read_refusals(&node, report);
}

/* --- text --- */

void operations_write_clocks(FILE *file, const struct report *report, bool *any_marked) {
  for (uint32_t i = 0; i < report->operations; i++) {
    struct report_latency latency = report_latency_of(&report->operation[i].tally->clock);
    report_text_latency(file, report->operation[i].name, &latency, any_marked);
  }
}

static void write_counts(
    FILE *file, const char *label, const struct report_operation *operation, const struct report *r) {
  const struct operation_tally *tally = operation->tally;
  char attempted[32], succeeded[32], failed[32], items[32];
  format_count(attempted, tally->attempted);
  format_count(succeeded, tally->succeeded);
  format_count(failed, codes_total(&tally->failed));
  page_text(file, label, "%s: %s attempted, %s succeeded (%.2f/s), %s failed, %" PRIu64 " unanswered", operation->name,
      attempted, succeeded, operations_per_second(r, tally->succeeded, tally->late), failed,
      operation_unanswered(tally));
  if (operation->item) {
    format_count(items, tally->items);
    page_text(file, "", "  %s %s (%.2f/s)", items, operation->item,
        operations_per_second(r, tally->items, tally->items_late));
  }
  for (uint32_t i = 0; i < tally->failed.used; i++) {
    int32_t code = tally->failed.entry[i].code;
    const char *name = report_code_text(r, code);
    page_text(file, "", "  %" PRIu64 " of code %" PRId32 " (%s)", tally->failed.entry[i].count, code,
        name ? name : "unknown to muster");
  }
}

void operations_write_text(FILE *file, const struct report *report) {
  if (!report->operation) return;
  for (uint32_t i = 0; i < report->operations; i++)
    write_counts(file, i == 0 ? "operations" : "", &report->operation[i], report);
  page_text(
      file, "error rate", "%.2f %% of the requests failed or were not answered", operations_error_rate(report) * 100);
  const struct refusals *refusals = report->refusals;
  for (uint32_t i = 0; i < refusals->used; i++)
    page_text(file, "", "%" PRIu64 " x %s", refusals->entry[i].count, refusals->entry[i].text);
  if (refusals->others) page_text(file, "", "%" PRIu64 " of further texts", refusals->others);
  if (report->retry_hints == 0) return;
  page_text(file, "", "%" PRIu64 " retry hints honoured, %.3f s waited for them in all", report->retry_hints,
      (double)report->retry_waited_ns / 1e9);
}
