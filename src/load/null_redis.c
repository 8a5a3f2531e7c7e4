/* What the null peer says as a Redis server with nothing but publish/subscribe. */
#include "load/null_client.h"

#include "base/put.h"
#include "wire/resp.h"

#include <string.h>

#define BULK_MAX (4U << 20)
#define HELLO "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$4\r\nnull\r\n$5\r\nproto\r\n:3\r\n"

/* The head of what is pushed: of a push in RESP3, of an array in RESP2. */
static uint8_t *write_push_head(const struct null_client *to, uint8_t *out) {
  return put_view(out, view_str(to->as.redis.resp3 ? ">3\r\n" : "*3\r\n"));
}

static bool write_text(struct null_client *client, const char *text) {
  return stream_write(&client->stream, text, strlen(text));
}

static bool write_integer(struct null_client *client, uint32_t value) {
  uint8_t text[16];
  uint8_t *at = put_number(put_text(text, ":"), value);
  at = put_text(at, "\r\n");
  return stream_write(&client->stream, text, (size_t)(at - text));
}

static bool on_subscribe(struct null_client *client, struct view channel) {
  struct hub_seat seat = {.client = client};
  if (!hub_join(&client->house->hub, channel, &seat)) return false;
  uint8_t *out = stream_reserve(&client->stream, 3 * RESP_HEAD_MAX + resp_bulk_size(channel.len) + 16);
  if (!out) return false;
  uint8_t *at = resp_write_bulk(write_push_head(client, out), view_str("subscribe"));
  at = put_number(put_text(resp_write_bulk(at, channel), ":"), client->topics);
  at = put_text(at, "\r\n");
  stream_commit(&client->stream, (size_t)(at - out));
  return true;
}

/* A recipient that cannot take it misses it, and the run that measures says so. */
static void push(struct null_client *to, struct view channel, struct view content) {
  uint8_t *out =
      stream_reserve(&to->stream, 3 * RESP_HEAD_MAX + resp_bulk_size(channel.len) + resp_bulk_size(content.len));
  if (!out) return;
  uint8_t *at = resp_write_bulk(write_push_head(to, out), view_str("message"));
  at = resp_write_bulk(resp_write_bulk(at, channel), content);
  stream_commit(&to->stream, (size_t)(at - out));
}

/* The publisher too, as Redis does, and before its reply. */
static bool on_publish(struct null_client *client, struct view channel, struct view content) {
  const struct hub_topic *topic = hub_find(&client->house->hub, channel);
  uint32_t seats = topic ? topic->seats : 0;
  for (uint32_t i = 0; i < seats; i++)
    push(topic->seat[i].client, channel, content);
  return write_integer(client, seats);
}

static bool on_hello(struct null_client *client) {
  client->as.redis.resp3 = true;
  return write_text(client, HELLO);
}

/* rest: the arguments behind the command's name. */
static bool on_command(struct null_client *client, struct view name, struct view rest) {
  struct resp_value channel, content;
  if (view_is(name, "HELLO")) return on_hello(client);
  if (view_is(name, "AUTH")) return write_text(client, "+OK\r\n");
  if (view_is(name, "PING")) {
    bool as_array = client->topics > 0 && !client->as.redis.resp3;
    return write_text(client, as_array ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
  }
  if (view_is(name, "PUBLISH")) {
    if (!resp_next(&rest, &channel) || !resp_next(&rest, &content)) return false;
    return on_publish(client, channel.text, content.text);
  }
  if (!view_is(name, "SUBSCRIBE")) return write_text(client, "-ERR the null peer has no such command\r\n");
  while (resp_next(&rest, &channel)) {
    if (!on_subscribe(client, channel.text)) return false;
  }
  return true;
}

static bool on_bytes(struct null_client *client, uint8_t *data, size_t len, size_t *used) {
  struct resp_value array, name;
  size_t size;
  enum resp_result result = resp_measure(data, len, BULK_MAX, &size);
  if (result == RESP_PARTIAL) return true;
  struct view rest = view_of(data, size);
  if (result == RESP_BAD || !resp_next(&rest, &array) || array.type != RESP_ARRAY) return false;
  *used = size;
  return resp_next(&rest, &name) && on_command(client, name.text, rest);
}

const struct null_dialect null_redis = {
    .driver = "redis",
    .scheme = "redis",
    .topologies = NULL_PUBSUB_TOPOLOGIES,
    .bytes = on_bytes,
};
