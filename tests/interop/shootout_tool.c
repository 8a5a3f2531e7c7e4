/* The shootout drivers as a program: connects clients to a target, lets each send one echo and the first of them
 * broadcast, one after the other, and prints what came of it as JSON. Ends with 1 when not all came within 20 s.
 *   shootout_tool URL CLIENTS BROADCASTS */
#include "base/clock.h"
#include "driver/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RUN_ID UINT64_C(0x0123456789abcdef)
#define LIMIT_NS (20 * NS_PER_SEC)
#define SIZE 100

struct tool {
  struct loop *loop;
  struct driver_run run;
  uint8_t *clients;
  size_t stride;
  uint32_t count, broadcasts;
  uint32_t established, failed, echoes, deliveries, acked, unexpected;
  uint32_t sent;          /* broadcasts */
  uint32_t early_results; /* acked before the sender's own copy */
  uint32_t own_copies;
  int32_t failed_code;
};

static struct tool tool; /* hooks have no context of their own */

static struct client *client_at(uint32_t i) {
  return (struct client *)(tool.clients + i * tool.stride);
}

static bool publish(struct client *client, enum publish_to to, uint32_t sequence) {
  uint64_t now_ns = clock_now_ns();
  struct publish publish = {.to = to,
      .payload = {.run_id = RUN_ID,
          .scheduled_ns = now_ns,
          .written_ns = now_ns,
          .sender = client->index,
          .sequence = sequence,
          .size = SIZE,
          .phase = to == PUBLISH_TO_SELF ? PAYLOAD_WARM_UP : PAYLOAD_MEASURE}};
  publish.token = publish_token(&publish.payload);
  return tool.run.driver->publish(client, &publish) == PUBLISH_WRITTEN;
}

static void on_established(struct client *client) {
  (void)client;
  tool.established++;
}

static void on_failed(struct client *client, int32_t code) {
  tool.failed++;
  tool.failed_code = code;
  stream_close(&client->stream, true);
}

static void broadcast_next(void) {
  if (tool.sent < tool.broadcasts && publish(client_at(0), PUBLISH_TO_ALL, tool.sent)) tool.sent++;
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  bool expected = client->index == 0 && code == 0 && token >> 1 == tool.acked && (token & 1);
  if (!expected) {
    tool.unexpected++;
    return;
  }
  tool.acked++;
  tool.early_results += tool.own_copies < tool.acked;
  broadcast_next();
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  struct payload payload;
  enum payload_result result = payload_read(tool.run.driver->payload_form, content.data, content.len, &payload);
  bool ours = !overlap && result == PAYLOAD_OK && payload.run_id == RUN_ID;
  if (ours && payload.phase == PAYLOAD_MEASURE && payload.sender == 0) {
    tool.deliveries++;
    tool.own_copies += client->index == 0;
  } else if (ours && payload.phase == PAYLOAD_WARM_UP && payload.sender == client->index) {
    tool.echoes++;
  } else {
    tool.unexpected++;
  }
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client, (void)due_ns;
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void opened(struct stream *stream) {
  tool.run.driver->opened((struct client *)stream);
}

static size_t received(struct stream *stream, uint8_t *data, size_t len) {
  return tool.run.driver->received((struct client *)stream, data, len);
}

static void closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
  tool.failed++;
}

static const struct stream_ops ops = {.opened = opened, .received = received, .closed = closed};

/* Turns the loop until a counter has reached a value; false when it does not in time. */
static bool await(const uint32_t *counter, uint32_t value) {
  uint64_t until_ns = clock_now_ns() + LIMIT_NS;
  while (*counter < value && tool.failed == 0 && clock_now_ns() < until_ns)
    loop_turn(tool.loop, clock_now_ns() + 10 * NS_PER_MS);
  return *counter >= value;
}

static enum status connect_all(struct err *err) {
  for (uint32_t i = 0; i < tool.count; i++) {
    struct client *client = client_at(i);
    client->hooks = &hooks;
    client->run = &tool.run;
    client->index = i;
    enum status status = stream_connect(
        &client->stream, tool.loop, &ops, &tool.run.address, NULL, tool.run.tls, tool.run.server_name, err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

static bool exchange(void) {
  if (!await(&tool.established, tool.count)) return false;
  for (uint32_t i = 0; i < tool.count; i++) {
    if (!publish(client_at(i), PUBLISH_TO_SELF, i)) return false;
  }
  if (!await(&tool.echoes, tool.count)) return false;
  broadcast_next();
  return await(&tool.acked, tool.broadcasts) && await(&tool.deliveries, tool.broadcasts * tool.count);
}

static enum status prepare(const char *url, struct err *err) {
  struct driver_settings *settings = &tool.run.settings;
  enum status status = url_parse(url, &settings->url, err);
  if (status != STATUS_OK) return status;
  tool.run.driver = driver_find(settings->url.scheme);
  if (!tool.run.driver) return err_set(err, STATUS_USAGE, "no driver for %s", settings->url.scheme);
  settings->target = url;
  settings->run_id = RUN_ID;
  settings->clients = tool.count;
  settings->payload_bytes = SIZE;
  return tool.run.driver->prepare(&tool.run, err);
}

static void finish(void) {
  for (uint32_t i = 0; i < tool.count; i++) {
    struct client *client = client_at(i);
    if (stream_is_open(&client->stream)) tool.run.driver->closing(client);
    stream_close(&client->stream, false);
    tool.run.driver->released(client);
  }
  tool.run.driver->release(&tool.run);
  loop_destroy(tool.loop);
  free(tool.clients);
}

int main(int argc, char **argv) {
  struct err err = {0};
  if (argc != 4) {
    fprintf(stderr, "usage: shootout_tool URL CLIENTS BROADCASTS\n");
    return 2;
  }
  tool.count = (uint32_t)strtoul(argv[2], NULL, 10);
  tool.broadcasts = (uint32_t)strtoul(argv[3], NULL, 10);
  enum status status = prepare(argv[1], &err);
  if (status == STATUS_OK) {
    tool.stride = (sizeof(struct client) + tool.run.driver->client_bytes + 15) / 16 * 16;
    tool.clients = calloc(tool.count, tool.stride);
    status = tool.clients ? loop_create(&tool.loop, &err) : STATUS_MEMORY;
  }
  if (status == STATUS_OK) status = connect_all(&err);
  if (status != STATUS_OK) {
    fprintf(stderr, "shootout_tool: %s\n", err.text);
    return 2;
  }
  bool complete = exchange();
  printf("{\"established\":%" PRIu32 ",\"failed\":%" PRIu32 ",\"failed_code\":%" PRId32 ",\"echoes\":%" PRIu32
         ",\"acked\":%" PRIu32 ",\"deliveries\":%" PRIu32 ",\"early_results\":%" PRIu32 ",\"unexpected\":%" PRIu32
         "}\n",
      tool.established, tool.failed, tool.failed_code, tool.echoes, tool.acked, tool.deliveries, tool.early_results,
      tool.unexpected);
  finish();
  return complete ? 0 : 1;
}
