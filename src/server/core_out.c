/* Results on their way to the gateways. */
#include "server/core_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void fan_out_release(struct fan_out *message) {
  if (message && atomic_fetch_sub_explicit(&message->references, 1, memory_order_acq_rel) == 1) free(message);
}

struct view out_text(const struct out *out) {
  return view_of(out->bytes, out->text_len);
}

struct view out_data(const struct out *out) {
  return view_of(out->bytes + out->text_len, out->data_len);
}

const struct fan_out_target *out_targets(const struct out *out) {
  return (const struct fan_out_target *)(const void *)out->bytes;
}

void out_free(struct out *out) {
  if (!out) return;
  fan_out_release(out->message);
  free(out);
}

enum status gateway_port_open(struct gateway_port *port, struct err *err) {
  atomic_init(&port->newest, NULL);
  port->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (port->event_fd >= 0) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot make an eventfd: %s", strerror(errno));
}

void gateway_port_close(struct gateway_port *port) {
  for (struct out *out = gateway_port_take(port); out;) {
    struct out *next = out->next;
    out_free(out);
    out = next;
  }
  close(port->event_fd);
  port->event_fd = -1;
}

struct out *gateway_port_take(struct gateway_port *port) {
  /* Drained first: what comes in between makes the descriptor readable again, and at worst for nothing. */
  uint64_t count;
  ssize_t got = read(port->event_fd, &count, sizeof count);
  (void)got;
  struct out *out = atomic_exchange_explicit(&port->newest, NULL, memory_order_acquire);
  struct out *oldest = NULL;
  while (out) {
    struct out *next = out->next;
    out->next = oldest;
    oldest = out;
    out = next;
  }
  return oldest;
}

static void port_append(struct gateway_port *port, struct out *newest, struct out *oldest) {
  struct out *before = atomic_load_explicit(&port->newest, memory_order_relaxed);
  do
    oldest->next = before;
  while (!atomic_compare_exchange_weak_explicit(
      &port->newest, &before, newest, memory_order_release, memory_order_relaxed));
  if (before) return; /* whoever made it non-empty has signalled */
  uint64_t one = 1;
  ssize_t put = write(port->event_fd, &one, sizeof one);
  (void)put;
}

static void outbox_push(struct core *core, uint32_t gateway, struct out *out, size_t size) {
  struct outbox *box = &core->outboxes[gateway];
  out->next = box->newest;
  box->newest = out;
  if (!box->oldest) box->oldest = out;
  core->batch_bytes += size;
}

struct out *out_stage(
    struct core *core, enum out_kind kind, struct session_ref session, struct view text, struct view data) {
  if (session.gateway >= core->gateways) return NULL;
  size_t size = sizeof(struct out) + text.len + data.len;
  struct out *out = malloc(size);
  if (!out) {
    core_out_of_memory(core);
    return NULL;
  }
  *out = (struct out){.kind = kind, .session = session, .text_len = (uint32_t)text.len, .data_len = (uint32_t)data.len};
  if (text.len) memcpy(out->bytes, text.data, text.len);
  if (data.len) memcpy(out->bytes + text.len, data.data, data.len);
  outbox_push(core, session.gateway, out, size);
  return out;
}

void stage_target(struct core *core, const struct session *session, int64_t time_ms, int64_t unread_index, bool copy) {
  struct outbox *box = &core->outboxes[session->ref.gateway];
  if (box->target_count == box->target_capacity) {
    uint32_t capacity = box->target_capacity ? box->target_capacity * 2 : 64;
    struct fan_out_target *grown = realloc(box->targets, capacity * sizeof *grown);
    if (!grown) {
      core_out_of_memory(core);
      return;
    }
    box->targets = grown;
    box->target_capacity = capacity;
  }
  box->targets[box->target_count++] = (struct fan_out_target){.slot = session->ref.slot,
      .generation = session->ref.generation,
      .msg_time_ms = time_ms,
      .unread_index = unread_index,
      .is_copy = copy};
}

bool any_target_staged(const struct core *core) {
  for (uint32_t i = 0; i < core->gateways; i++)
    if (core->outboxes[i].target_count) return true;
  return false;
}

static void stage_chunk(struct core *core, uint32_t gateway, struct fan_out *message,
    const struct fan_out_target *targets, uint32_t count) {
  size_t size = sizeof(struct out) + count * sizeof *targets;
  struct out *out = malloc(size);
  if (!out) {
    core_out_of_memory(core);
    return;
  }
  *out = (struct out){.kind = OUT_FAN_OUT, .message = message, .targets = count};
  memcpy(out->bytes, targets, count * sizeof *targets);
  atomic_fetch_add_explicit(&message->references, 1, memory_order_relaxed);
  outbox_push(core, gateway, out, size);
  atomic_fetch_add_explicit(&core->stats.fan_out_targets, count, memory_order_relaxed);
}

static struct fan_out *fan_out_new(struct core *core, const uint8_t *bytes, struct down_parts parts) {
  size_t len = (size_t)parts.head + parts.middle + parts.tail;
  struct fan_out *message = malloc(sizeof *message + len);
  if (!message) {
    core_out_of_memory(core);
    return NULL;
  }
  atomic_init(&message->references, 1);
  message->state = false;
  message->notice = 0;
  message->head_len = parts.head;
  message->middle_len = parts.middle;
  message->tail_len = parts.tail;
  memcpy(message->bytes, bytes, len);
  core->batch_bytes += len;
  return message;
}

/* Gives the message to all staged targets. */
static void hand_out(struct core *core, struct fan_out *message) {
  for (uint32_t i = 0; i < core->gateways; i++) {
    struct outbox *box = &core->outboxes[i];
    for (uint32_t at = 0; at < box->target_count; at += FAN_OUT_TARGETS) {
      uint32_t rest = box->target_count - at;
      stage_chunk(core, i, message, box->targets + at, rest < FAN_OUT_TARGETS ? rest : FAN_OUT_TARGETS);
    }
    box->target_count = 0;
  }
  fan_out_release(message);
}

void stage_fan_out(struct core *core, const uint8_t *bytes, struct down_parts parts, bool state) {
  struct fan_out *message = fan_out_new(core, bytes, parts);
  if (!message) return;
  message->state = state;
  hand_out(core, message);
}

void stage_notice(struct core *core, enum juggle_notify_type type, struct view room_id) {
  if (!any_target_staged(core)) return;
  struct fan_out *message = fan_out_new(core, room_id.data, (struct down_parts){.head = (uint32_t)room_id.len});
  if (!message) return;
  message->notice = (int32_t)type;
  hand_out(core, message);
}

void outs_release(struct core *core) {
  for (uint32_t i = 0; i < core->gateways; i++) {
    struct outbox *box = &core->outboxes[i];
    if (box->newest) port_append(core->ports[i], box->newest, box->oldest);
    box->newest = box->oldest = NULL;
  }
  core->batch_bytes = 0;
}

void outs_discard(struct core *core) {
  for (uint32_t i = 0; i < core->gateways; i++) {
    struct outbox *box = &core->outboxes[i];
    while (box->newest) {
      struct out *next = box->newest->next;
      out_free(box->newest);
      box->newest = next;
    }
    box->oldest = NULL;
    box->target_count = 0;
  }
  core->batch_bytes = 0;
}
