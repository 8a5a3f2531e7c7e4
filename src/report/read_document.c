/* A file of JSON, and which of muster's documents it is. */
#include "report/read.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [DOCUMENT_RUN] = "run report",
    [DOCUMENT_FIND] = "search",
    [DOCUMENT_CALIBRATE] = "calibration",
    [DOCUMENT_TRIALS] = "summary of trials",
    [DOCUMENT_COMPARE] = "comparison",
};

const char *document_kind_name(enum document_kind kind) {
  return kind_names[kind];
}

/* "kind" is how searches mark themselves, "document" what summaries of several runs do; a run has neither. */
static enum status tell_kind(struct document *document, struct err *err) {
  static const struct {
    const char *key, *value;
    enum document_kind kind;
  } marks[] = {
      {"kind", "find", DOCUMENT_FIND},
      {"kind", "calibrate", DOCUMENT_CALIBRATE},
      {"document", "trials", DOCUMENT_TRIALS},
      {"document", "compare", DOCUMENT_COMPARE},
  };
  const json_t *root = document->root;
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    const char *value = json_string_value(json_object_get(root, marks[i].key));
    if (!value || strcmp(value, marks[i].value) != 0) continue;
    document->kind = marks[i].kind;
    return STATUS_OK;
  }
  document->kind = DOCUMENT_RUN;
  bool is_marked = json_object_get(root, "document") || json_object_get(root, "kind");
  if (!is_marked && json_object_get(root, "schema_version") && json_object_get(root, "run_id")) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "%.200s: not a document of muster: give a JSON file that run, find, calibrate or compare has written",
      document->name);
}

/* An empty list of two bytes takes a hundred times as many once it is parsed. */
#define CONTAINERS_MAX 2000000

static bool is_crowded(const struct document *document) {
  size_t containers = 0;
  bool in_text = false;
  for (size_t i = 0; i < document->len && containers <= CONTAINERS_MAX; i++) {
    char c = document->text[i];
    if (in_text && c == '\\') i++;
    if (c == '"') in_text = !in_text;
    if (!in_text && (c == '[' || c == '{')) containers++;
  }
  return containers > CONTAINERS_MAX;
}

static enum status parse(struct document *document, struct err *err) {
  json_error_t error;
  if (is_crowded(document)) {
    return err_set(err, STATUS_USAGE, "%.200s: holds more than %d lists and objects: not a document of muster",
        document->name, CONTAINERS_MAX);
  }
  document->root = json_loadb(document->text, document->len, JSON_REJECT_DUPLICATES, &error);
  if (!document->root) {
    return err_set(err, STATUS_USAGE, "%.200s: not JSON, or not whole: %.100s (line %d, column %d)", document->name,
        error.text, error.line, error.column);
  }
  return tell_kind(document, err);
}

enum status document_parse(const char *name, const char *text, size_t len, struct document *out, struct err *err) {
  *out = (struct document){.name = name, .text = malloc(len + 1), .len = len};
  if (!out->text) return err_set(err, STATUS_MEMORY, "%.200s: out of memory", name);
  memcpy(out->text, text, len);
  out->text[len] = '\0';
  return parse(out, err);
}

static enum status read_all(FILE *file, struct document *out, struct err *err) {
  size_t room = 0;
  for (;;) {
    if (out->len + 1 >= room) {
      room = room ? room * 2 : 1u << 16;
      char *more = realloc(out->text, room);
      if (!more) return err_set(err, STATUS_MEMORY, "%.200s: out of memory", out->name);
      out->text = more;
    }
    size_t got = fread(out->text + out->len, 1, room - out->len - 1, file);
    out->len += got;
    if (out->len > DOCUMENT_BYTES_MAX) {
      return err_set(err, STATUS_USAGE, "%.200s: longer than %u MiB: not a document of muster", out->name,
          DOCUMENT_BYTES_MAX >> 20);
    }
    if (got == 0) break;
  }
  out->text[out->len] = '\0';
  if (!ferror(file)) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%.200s: cannot read: %s", out->name, strerror(errno));
}

enum status document_read(const char *path, struct document *out, struct err *err) {
  bool is_input = strcmp(path, "-") == 0;
  *out = (struct document){.name = is_input ? "standard input" : path};
  FILE *file = is_input ? stdin : fopen(path, "re");
  if (!file) return err_set(err, STATUS_USAGE, "%.200s: cannot open: %s", path, strerror(errno));
  enum status status = read_all(file, out, err);
  if (!is_input) fclose(file);
  return status == STATUS_OK ? parse(out, err) : status;
}

void document_free(struct document *document) {
  json_decref(document->root);
  free(document->text);
  document->root = NULL;
  document->text = NULL;
}
