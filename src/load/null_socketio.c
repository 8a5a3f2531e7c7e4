/* What the null peer says as a Socket.IO server of muster's contract: join(room, callback), publish(room, content,
 * callback), message(content). It pings nobody. */
#include "load/null_client.h"

#include "base/put.h"
#include "wire/json_scan.h"
#include "wire/socketio.h"

#include <string.h>

#define OPEN "0{\"sid\":\"null\",\"upgrades\":[],\"maxPayload\":4194304}"
#define CONNECTED "{\"sid\":\"null\"}"
#define MESSAGE "message"
#define SMALL_MAX (SOCKETIO_NAMESPACE_MAX + 64)

static bool write_text(struct null_client *client, struct view text) {
  size_t total;
  uint8_t *out = null_client_begin(client, WS_TEXT, text.len, &total);
  if (!out) return false;
  put_view(out, text);
  stream_commit(&client->stream, total);
  return true;
}

static bool on_connect(struct null_client *client, struct view namespace) {
  uint8_t text[SMALL_MAX];
  uint8_t *end = socketio_write_connect(text, namespace, view_str(CONNECTED));
  return write_text(client, view_of(text, (size_t)(end - text)));
}

static bool write_ack(struct null_client *client, const struct socketio_packet *packet) {
  uint8_t text[SMALL_MAX];
  if (!packet->has_id) return true;
  uint8_t *end = socketio_write_ack(text, packet->namespace, packet->id);
  return write_text(client, view_of(text, (size_t)(end - text)));
}

/* A recipient that cannot take it misses it, and the run that measures says so. */
static void push(struct null_client *to, struct view head, struct view content) {
  size_t total;
  uint8_t *out = null_client_begin(to, WS_TEXT, head.len + content.len + 2, &total);
  if (!out) return;
  socketio_event_end(put_view(put_view(out, head), content));
  stream_commit(&to->stream, total);
}

static void fan_out(struct null_client *client, struct view namespace, struct view room, struct view content) {
  uint8_t head[SOCKETIO_EVENT_FIXED + SMALL_MAX];
  struct socketio_event event = {.namespace = namespace, .name = view_str(MESSAGE)};
  size_t head_len = (size_t)(socketio_write_event(head, &event) - head);
  const struct hub_topic *topic = hub_find(&client->house->hub, room);
  for (uint32_t i = 0; topic && i < topic->seats; i++) {
    bool own = topic->seat[i].client == client;
    if (!own || client->house->echoes) push(topic->seat[i].client, view_of(head, head_len), content);
  }
}

/* Two elements are a join, three a publish, whatever the events are called. */
static bool on_event(struct null_client *client, const struct socketio_packet *packet) {
  struct scan_walk walk = scan_array(packet->data);
  struct view element[3], next;
  uint32_t count = 0;
  while (scan_next_element(&walk, &next)) {
    if (count == 3) return false;
    element[count++] = next;
  }
  if (walk.bad || count < 2 || packet->namespace.len > SOCKETIO_NAMESPACE_MAX) return false;
  struct view room = scan_plain_string(element[1]);
  if (count == 3) {
    fan_out(client, packet->namespace, room, scan_plain_string(element[2]));
    return write_ack(client, packet);
  }
  struct hub_seat seat = {.client = client};
  return hub_join(&client->house->hub, room, &seat) && write_ack(client, packet);
}

static bool on_message(struct null_client *client, const struct ws_event *event) {
  struct engineio_packet engine;
  struct socketio_packet packet;
  if (!engineio_read(view_of(event->data, event->len), &engine)) return false;
  if (engine.type == ENGINEIO_PONG) return true;
  if (engine.type != ENGINEIO_MESSAGE || !socketio_read(engine.data, &packet)) return false;
  if (packet.namespace.len > SOCKETIO_NAMESPACE_MAX) return false;
  if (packet.type == SOCKETIO_CONNECT) return on_connect(client, packet.namespace);
  return packet.type == SOCKETIO_EVENT && on_event(client, &packet);
}

static bool on_opened(struct null_client *client) {
  return write_text(client, view_str(OPEN));
}

const struct null_dialect null_socketio = {
    .driver = "socketio",
    .scheme = "socketio",
    .topologies = NULL_PUBSUB_TOPOLOGIES,
    .opened = on_opened,
    .message = on_message,
};
