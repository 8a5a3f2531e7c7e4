#include "load/calibrate.h"

#include "report/save.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1 << 20)
#define FILE_KIND "muster calibrations"
#define FILE_VERSION 1

/* The title says version, transport and quality of service; the ACK's meaning what is waited for. */
static void shape_of(char out[CALIBRATION_SHAPE_MAX], const struct report *report) {
  const struct workload *l = &report->workload;
  const struct report_target *target = &report->target;
  bool in_groups = l->topology == TOPOLOGY_GROUPS && l->groups > 1;
  snprintf(out, CALIBRATION_SHAPE_MAX,
      "%s, %u clients, %u senders, %u offline, %u %sgroups, %s loop, %s arrivals, %u B%s%s%s%s%s, %u workers; %s%s; "
      "ack: %s",
      topology_name(l->topology), l->clients, l->senders, l->offline, in_groups ? l->groups : 1,
      l->shared_groups ? "shared " : "", load_model_name(l->load), arrivals_name(l->arrivals), l->payload_bytes,
      l->obfuscate ? ", obfuscated" : "", l->store ? ", stored" : "", l->count ? ", counted" : "",
      l->storm ? ", storm" : "", l->backlog ? ", backlog" : "", l->workers, target->protocol_title,
      target->tls[0] ? ", TLS" : "", target->ack_meaning);
}

void calibration_of_report(const struct report *report, struct calibration *out) {
  const struct report_environment *machine = &report->environment;
  *out = (struct calibration){.usable_cpus = machine->usable_cpus};
  memcpy(out->hostname, machine->hostname, sizeof out->hostname);
  memcpy(out->cpu_model, machine->cpu_model, sizeof out->cpu_model);
  memcpy(out->kernel, machine->kernel, sizeof out->kernel);
  memcpy(out->protocol, report->target.protocol, sizeof out->protocol);
  shape_of(out->shape, report);
}

static bool is_same(const struct calibration *a, const struct calibration *b) {
  return strcmp(a->hostname, b->hostname) == 0 && strcmp(a->cpu_model, b->cpu_model) == 0 &&
         strcmp(a->kernel, b->kernel) == 0 && a->usable_cpus == b->usable_cpus &&
         strcmp(a->protocol, b->protocol) == 0 && strcmp(a->shape, b->shape) == 0;
}

/* --- reading --- */

static bool read_text(const json_t *object, const char *key, char *out, size_t size) {
  const char *text = json_string_value(json_object_get(object, key));
  if (!text || strlen(text) >= size) return false;
  memcpy(out, text, strlen(text) + 1);
  return true;
}

static bool read_entry(const json_t *object, struct calibration *out) {
  const json_t *machine = json_object_get(object, "machine");
  const json_t *cpus = json_object_get(machine, "usable_cpus");
  *out = (struct calibration){
      .ceiling_per_sec = json_number_value(json_object_get(object, "ceiling_publishes_per_second")),
      .broken_per_sec = json_number_value(json_object_get(object, "broken_publishes_per_second")),
  };
  if (!json_is_integer(cpus) || json_integer_value(cpus) < 0 || json_integer_value(cpus) > UINT32_MAX) return false;
  out->usable_cpus = (uint32_t)json_integer_value(cpus);
  return out->ceiling_per_sec > 0 && read_text(machine, "hostname", out->hostname, sizeof out->hostname) &&
         read_text(machine, "cpu_model", out->cpu_model, sizeof out->cpu_model) &&
         read_text(machine, "kernel", out->kernel, sizeof out->kernel) &&
         read_text(object, "protocol", out->protocol, sizeof out->protocol) &&
         read_text(object, "shape", out->shape, sizeof out->shape) &&
         read_text(object, "measured_at", out->measured_at, sizeof out->measured_at);
}

static bool read_all(const json_t *root, struct calibrations *out) {
  const char *kind = json_string_value(json_object_get(root, "kind"));
  const json_t *entries = json_object_get(root, "calibrations");
  if (!kind || strcmp(kind, FILE_KIND) != 0 || !json_is_array(entries)) return false;
  if (json_integer_value(json_object_get(root, "version")) != FILE_VERSION) return false;
  if (json_array_size(entries) > CALIBRATIONS_MAX) return false;
  for (size_t i = 0; i < json_array_size(entries); i++) {
    if (!read_entry(json_array_get(entries, i), &out->entry[i])) return false;
    out->count++;
  }
  return true;
}

enum status calibrations_read(const char *path, struct calibrations *out, struct err *err) {
  out->count = 0;
  struct stat info;
  FILE *file = fopen(path, "re");
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return STATUS_OK;
  if (!file) return err_set(err, STATUS_IO, "cannot read %s: %s", path, strerror(errno));
  bool small = fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= FILE_BYTES_MAX;
  json_t *root = small ? json_loadf(file, JSON_REJECT_DUPLICATES, NULL) : NULL;
  fclose(file);
  bool good = root && read_all(root, out);
  json_decref(root);
  if (good) return STATUS_OK;
  out->count = 0;
  return err_set(err, STATUS_PROTOCOL, "%s is no file of calibrations, or a damaged one: move it away", path);
}

/* --- writing --- */

static json_t *json_of(const struct calibration *c) {
  json_t *machine = json_pack("{s:s, s:s, s:s, s:I}", "hostname", c->hostname, "cpu_model", c->cpu_model, "kernel",
      c->kernel, "usable_cpus", (json_int_t)c->usable_cpus);
  json_t *broken = c->broken_per_sec > 0 ? json_real(c->broken_per_sec) : json_null();
  return json_pack("{s:o, s:s, s:s, s:f, s:o, s:s}", "machine", machine, "protocol", c->protocol, "shape", c->shape,
      "ceiling_publishes_per_second", c->ceiling_per_sec, "broken_publishes_per_second", broken, "measured_at",
      c->measured_at);
}

static enum status write_all(const char *path, const struct calibrations *calibrations, struct err *err) {
  char temporary[PATH_MAX];
  int len = snprintf(temporary, sizeof temporary, "%s.%d.new", path, (int)getpid());
  if (len < 0 || (size_t)len >= sizeof temporary)
    return err_set(err, STATUS_USAGE, "the path is too long: %.80s", path);
  enum status status = save_make_parents(path, err);
  if (status != STATUS_OK) return status;
  json_t *entries = json_array();
  for (uint32_t i = 0; i < calibrations->count; i++)
    json_array_append_new(entries, json_of(&calibrations->entry[i]));
  json_t *root = json_pack("{s:s, s:i, s:o}", "kind", FILE_KIND, "version", FILE_VERSION, "calibrations", entries);
  bool written = root && json_dump_file(root, temporary, JSON_INDENT(2)) == 0 && rename(temporary, path) == 0;
  int error = errno;
  json_decref(root);
  if (written) return STATUS_OK;
  unlink(temporary);
  return err_set(err, STATUS_IO, "cannot write %s: %s", path, error ? strerror(error) : "out of memory");
}

static void put(struct calibrations *calibrations, const struct calibration *calibration) {
  uint32_t at = 0;
  while (at < calibrations->count && !is_same(&calibrations->entry[at], calibration))
    at++;
  if (at == CALIBRATIONS_MAX) at = 0;
  if (at < calibrations->count) {
    calibrations->count--;
    memmove(&calibrations->entry[at], &calibrations->entry[at + 1],
        (calibrations->count - at) * sizeof calibrations->entry[0]);
  }
  calibrations->entry[calibrations->count++] = *calibration;
}

enum status calibration_store(const char *path, const struct calibration *calibration, struct err *err) {
  struct calibrations *calibrations = calloc(1, sizeof *calibrations);
  if (!calibrations) return err_set(err, STATUS_MEMORY, "out of memory for calibrations");
  enum status status = calibrations_read(path, calibrations, err);
  if (status == STATUS_OK) {
    put(calibrations, calibration);
    status = write_all(path, calibrations, err);
  }
  free(calibrations);
  return status;
}

/* --- using --- */

void calibration_note(const struct calibrations *calibrations, struct report *report) {
  struct calibration own;
  calibration_of_report(report, &own);
  for (uint32_t i = 0; i < calibrations->count; i++) {
    const struct calibration *entry = &calibrations->entry[i];
    if (!is_same(entry, &own)) continue;
    report->calibration.ceiling_per_sec = entry->ceiling_per_sec;
    report->calibration.is_lower_bound = entry->broken_per_sec <= 0;
    memcpy(report->calibration.measured_at, entry->measured_at, sizeof report->calibration.measured_at);
  }
}
