/* A driver against a scripted peer: a socket pair, with the driver's stream on one end and what the test writes and
 * reads on the other, over WebSocket where the test says so. The including test brings cmocka along. */
#ifndef MUSTER_TEST_DRIVER_RIG_H
#define MUSTER_TEST_DRIVER_RIG_H

#include "driver/driver.h"
#include "net/http.h"
#include "net/ws.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIG_RUN_ID UINT64_C(0x1234567890abcdef)
#define RIG_RUN "muster.1234567890abcdef"
#define RIG_INDEX 7
#define RIG_SIZE 64

struct rig {
  struct loop *loop;
  struct client *client;
  struct driver_run run;
  int peer;
  struct ws ws;      /* the peer's side, where it is WebSocket */
  uint8_t in[65536]; /* what the client sent and the test has not read */
  size_t in_len;
  char text[4096]; /* the message that was taken last */
  size_t text_len;
  /* What the hooks were told. */
  int established, failed, acked, delivered, wakes;
  int32_t failed_code, acked_code;
  uint32_t acked_token;
  uint64_t wake_ns;
  struct payload payload; /* of the last delivery */
  enum payload_result payload_result;
};

static struct rig *rig; /* of the test that runs: hooks have no context of their own */

static void rig_on_established(struct client *client) {
  (void)client;
  rig->established++;
}

static void rig_on_failed(struct client *client, int32_t code) {
  rig->failed++;
  rig->failed_code = code;
  stream_close(&client->stream, false);
}

static void rig_on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client;
  rig->acked++;
  rig->acked_token = token;
  rig->acked_code = code;
}

static void rig_on_delivered(struct client *client, struct view content, bool overlap) {
  assert_false(overlap);
  rig->delivered++;
  rig->payload_result = payload_read(client->run->driver->payload_form, content.data, content.len, &rig->payload);
}

static void rig_on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  rig->wakes++;
  rig->wake_ns = due_ns;
}

static void rig_opened(struct stream *stream) {
  rig->run.driver->opened((struct client *)stream);
}

static size_t rig_received(struct stream *stream, uint8_t *data, size_t len) {
  return rig->run.driver->received((struct client *)stream, data, len);
}

static void rig_closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
}

/* make_plan: the driver's prepare, or the part of it that asks no server. */
static inline enum status rig_prepare(struct driver_run *run, const struct driver *driver,
    enum status (*make_plan)(struct driver_run *run, struct err *err), const char *url,
    const struct driver_settings *settings, struct err *err) {
  *run = (struct driver_run){.driver = driver, .capabilities = driver->capabilities, .settings = *settings};
  run->settings.target = url;
  run->settings.run_id = RIG_RUN_ID;
  run->settings.payload_bytes = RIG_SIZE;
  if (run->settings.clients == 0) run->settings.clients = RIG_INDEX + 1;
  assert_int_equal(url_parse(url, &run->settings.url, err), STATUS_OK);
  return make_plan(run, err);
}

static inline struct rig *rig_start(const struct driver *driver,
    enum status (*make_plan)(struct driver_run *run, struct err *err), const char *url,
    const struct driver_settings *settings) {
  static const struct client_hooks hooks = {
      .established = rig_on_established,
      .failed = rig_on_failed,
      .acked = rig_on_acked,
      .delivered = rig_on_delivered,
      .wake = rig_on_wake,
  };
  static const struct stream_ops ops = {.opened = rig_opened, .received = rig_received, .closed = rig_closed};
  struct err err = {0};
  int pair[2];
  rig = calloc(1, sizeof *rig);
  assert_non_null(rig);
  if (rig_prepare(&rig->run, driver, make_plan, url, settings, &err) != STATUS_OK) fail_msg("%s", err.text);
  rig->client = calloc(1, sizeof(struct client) + driver->client_bytes);
  assert_non_null(rig->client);
  rig->client->hooks = &hooks;
  rig->client->run = &rig->run;
  rig->client->index = RIG_INDEX;
  assert_int_equal(loop_create(&rig->loop, NULL), STATUS_OK);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  rig->peer = pair[1];
  assert_int_equal(stream_accept(&rig->client->stream, rig->loop, &ops, pair[0], NULL, NULL), STATUS_OK);
  return rig;
}

static inline void rig_stop(struct rig *r) {
  stream_close(&r->client->stream, false);
  r->run.driver->released(r->client);
  r->run.driver->release(&r->run);
  loop_destroy(r->loop);
  close(r->peer);
  ws_free(&r->ws);
  free(r->client);
  free(r);
}

/* --- the peer --- */

static inline void rig_turn(struct rig *r) {
  for (int i = 0; i < 3; i++)
    loop_turn(r->loop, 0);
}

static inline void rig_read(struct rig *r) {
  rig_turn(r);
  ssize_t got;
  while ((got = read(r->peer, r->in + r->in_len, sizeof r->in - r->in_len)) > 0)
    r->in_len += (size_t)got;
}

static inline void rig_drop(struct rig *r, size_t len) {
  memmove(r->in, r->in + len, r->in_len - len);
  r->in_len -= len;
}

static inline void rig_write(struct rig *r, const void *data, size_t len) {
  assert_int_equal(write(r->peer, data, len), len);
  rig_turn(r);
}

/* The client's bytes must be these and no others. */
static inline void rig_takes(struct rig *r, const void *data, size_t len) {
  rig_read(r);
  if (r->in_len != len || memcmp(r->in, data, len) != 0) fail_msg("got \"%.*s\"", (int)r->in_len, (char *)r->in);
  r->in_len = 0;
}

/* Answers the upgrade, which must be for that target; extra: further lines of the answer. */
static inline void rig_upgrade(struct rig *r, const char *target, const char *extra) {
  struct http_head head;
  char answer[512];
  size_t used, len = 0;
  rig_read(r);
  assert_int_equal(http_read_request(r->in, r->in_len, &head, &used, NULL), HTTP_COMPLETE);
  if (!view_is(head.target, target)) fail_msg("asked for %.*s", (int)head.target.len, (const char *)head.target.data);
  assert_int_equal(ws_answer_request_with(&head, extra, answer, sizeof answer, &len, NULL), STATUS_OK);
  rig_drop(r, used);
  ws_init(&r->ws, WS_SERVER, sizeof r->text);
  rig_write(r, answer, len);
}

static inline void rig_write_frame(struct rig *r, uint8_t opcode, const void *data, size_t len) {
  uint8_t frame[WS_HEADER_MAX + 4096];
  assert_true(len <= 4096);
  size_t head = ws_write_header(frame, opcode, len, NULL);
  memcpy(frame + head, data, len);
  rig_write(r, frame, head + len);
}

static inline void rig_write_text(struct rig *r, const char *text) {
  rig_write_frame(r, WS_TEXT, text, strlen(text));
}

/* The client's next message, NUL behind it. */
static inline const char *rig_take_text(struct rig *r) {
  struct ws_event event;
  rig_read(r);
  size_t used = ws_read(&r->ws, r->in, r->in_len, &event);
  if (event.kind != WS_EVENT_MESSAGE) fail_msg("no message came, but event %d", event.kind);
  assert_int_equal(event.opcode, WS_TEXT);
  assert_true(event.len < sizeof r->text);
  memcpy(r->text, event.data, event.len);
  r->text[event.len] = '\0';
  r->text_len = event.len;
  rig_drop(r, used);
  return r->text;
}

static inline void rig_is_silent(struct rig *r) {
  rig_read(r);
  assert_int_equal(r->in_len, 0);
}

/* --- messages --- */

static inline struct payload rig_payload(uint32_t sequence) {
  return (struct payload){
      .run_id = RIG_RUN_ID, .sender = RIG_INDEX, .sequence = sequence, .size = RIG_SIZE, .phase = PAYLOAD_MEASURE};
}

/* The content of a message as text, of a driver whose payload is text. */
static inline const char *rig_content(uint32_t sequence) {
  static char text[RIG_SIZE + 1];
  struct payload payload = rig_payload(sequence);
  payload_write(PAYLOAD_BARE, (uint8_t *)text, &payload);
  return text;
}

static inline enum publish_result rig_publish(
    struct rig *r, enum publish_to to, uint32_t recipient, uint32_t sequence) {
  struct publish publish = {.to = to, .recipient = recipient, .payload = rig_payload(sequence)};
  publish.token = publish_token(&publish.payload);
  return r->run.driver->publish(r->client, &publish);
}

#endif
