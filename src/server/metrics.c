#include "server/metrics.h"

#include "base/clock.h"
#include "server/core.h"
#include "server/gateway.h"

#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct counter {
  const char *name;
  size_t offset;
};

#define GATEWAY_COUNTER(field)                                                                                         \
  { #field, offsetof(struct gateway_stats, field) }
static const struct counter gateway_counters[] = {
    GATEWAY_COUNTER(connections),
    GATEWAY_COUNTER(sessions),
    GATEWAY_COUNTER(accepted),
    GATEWAY_COUNTER(upgraded),
    GATEWAY_COUNTER(logins),
    GATEWAY_COUNTER(login_failures),
    GATEWAY_COUNTER(frames_in),
    GATEWAY_COUNTER(publishes),
    GATEWAY_COUNTER(queries),
    GATEWAY_COUNTER(acks_in),
    GATEWAY_COUNTER(pushes),
    GATEWAY_COUNTER(notices),
    GATEWAY_COUNTER(notices_coalesced),
    GATEWAY_COUNTER(copies),
    GATEWAY_COUNTER(states),
    GATEWAY_COUNTER(states_dropped),
    GATEWAY_COUNTER(room_notices_written),
    GATEWAY_COUNTER(room_notices_dropped),
    GATEWAY_COUNTER(rate_limited),
    GATEWAY_COUNTER(protocol_errors),
    GATEWAY_COUNTER(deadlines),
    GATEWAY_COUNTER(slow_readers_dropped),
    GATEWAY_COUNTER(kicked),
    GATEWAY_COUNTER(pauses),
    GATEWAY_COUNTER(refused),
};

#define CORE_COUNTER(field)                                                                                            \
  { #field, offsetof(struct core_stats, field) }
static const struct counter core_counters[] = {
    CORE_COUNTER(users),
    CORE_COUNTER(sessions),
    CORE_COUNTER(publishes),
    CORE_COUNTER(acks),
    CORE_COUNTER(rejects),
    CORE_COUNTER(fan_out_targets),
    CORE_COUNTER(commits),
    CORE_COUNTER(commit_ns),
    CORE_COUNTER(rows),
    CORE_COUNTER(queue_depth),
    CORE_COUNTER(duplicates),
    CORE_COUNTER(sync_queries),
    CORE_COUNTER(synced),
    CORE_COUNTER(online),
    CORE_COUNTER(rooms),
    CORE_COUNTER(room_members),
    CORE_COUNTER(room_messages),
    CORE_COUNTER(room_notices),
    CORE_COUNTER(room_pulled),
    CORE_COUNTER(room_dropped),
};

static uint64_t read_counter(const void *stats, size_t offset) {
  const char *at = (const char *)stats + offset;
  return atomic_load_explicit((const atomic_uint_fast64_t *)at, memory_order_relaxed);
}

static uint64_t over_gateways(const struct metrics_source *source, size_t offset) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < source->gateway_count; i++)
    sum += read_counter(&source->gateways[i].stats, offset);
  return sum;
}

static uint64_t output_peak(const struct metrics_source *source) {
  uint64_t peak = 0;
  for (uint32_t i = 0; i < source->gateway_count; i++) {
    uint64_t one = read_counter(&source->gateways[i].stats, offsetof(struct gateway_stats, output_peak));
    if (one > peak) peak = one;
  }
  return peak;
}

static void set(json_t *object, const char *name, uint64_t value) {
  json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *gateway_object(const struct metrics_source *source) {
  json_t *object = json_object();
  for (size_t i = 0; i < sizeof gateway_counters / sizeof *gateway_counters; i++)
    set(object, gateway_counters[i].name, over_gateways(source, gateway_counters[i].offset));
  set(object, "threads", source->gateway_count);
  set(object, "output_peak_bytes", output_peak(source));
  return object;
}

static json_t *core_object(const struct metrics_source *source) {
  const struct core_stats *stats = core_stats(source->core);
  json_t *object = json_object();
  for (size_t i = 0; i < sizeof core_counters / sizeof *core_counters; i++)
    set(object, core_counters[i].name, read_counter(stats, core_counters[i].offset));
  return object;
}

static json_t *connect_object(const struct metrics_source *source) {
  json_t *object = json_object();
  uint64_t sessions = over_gateways(source, offsetof(struct gateway_stats, sessions));
  set(object, "online_user_count", read_counter(core_stats(source->core), offsetof(struct core_stats, online)));
  set(object, "user_connect_count", sessions);
  set(object, "session_connect_count", over_gateways(source, offsetof(struct gateway_stats, connections)));
  return object;
}

static uint64_t microseconds(struct timeval time) {
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void add_process(json_t *root, const struct metrics_source *source) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  json_t *cpu = json_object(), *memory = json_object(), *load = json_object(), *disk = json_object();
  set(cpu, "user_us", microseconds(usage.ru_utime));
  set(cpu, "system_us", microseconds(usage.ru_stime));
  set(cpu, "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
  set(memory, "max_resident_kib", (uint64_t)usage.ru_maxrss);
  double average[3];
  if (getloadavg(average, 3) == 3) {
    json_object_set_new(load, "load1", json_real(average[0]));
    json_object_set_new(load, "load5", json_real(average[1]));
    json_object_set_new(load, "load15", json_real(average[2]));
  }
  struct statvfs volume;
  if (source->data_dir && statvfs(source->data_dir, &volume) == 0) {
    set(disk, "total_bytes", (uint64_t)volume.f_blocks * volume.f_frsize);
    set(disk, "free_bytes", (uint64_t)volume.f_bavail * volume.f_frsize);
  }
  json_object_set_new(root, "cpu", cpu);
  json_object_set_new(root, "memory", memory);
  json_object_set_new(root, "disk", disk);
  json_object_set_new(root, "load", load);
}

char *metrics_json(const struct metrics_source *source) {
  json_t *root = json_object();
  if (!root) return NULL;
  add_process(root, source);
  json_object_set_new(root, "client_connect", connect_object(source));
  json_t *own = json_object();
  set(own, "uptime_ms", (clock_now_ns() - source->started_ns) / NS_PER_MS);
  json_object_set_new(own, "gateway", gateway_object(source));
  json_object_set_new(own, "core", core_object(source));
  json_object_set_new(root, "musterd", own);
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text;
}
