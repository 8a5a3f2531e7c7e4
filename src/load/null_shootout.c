/* What the null peer says as a server of the four protocols of websocket-shootout. */
#include "load/null_client.h"

#include <string.h>

#define CHANNEL "benchmark"
#define TOPOLOGIES (1U << TOPOLOGY_ECHO | 1U << TOPOLOGY_BROADCAST)

static enum shootout_protocol protocol_of(const struct null_client *client) {
  static const struct {
    const struct null_dialect *dialect;
    enum shootout_protocol protocol;
  } known[] = {
      {&null_shootout_binary, SHOOTOUT_BINARY},
      {&null_shootout_phoenix, SHOOTOUT_PHOENIX},
      {&null_shootout_cable, SHOOTOUT_CABLE},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (known[i].dialect == client->house->dialect) return known[i].protocol;
  }
  return SHOOTOUT_JSON;
}

static bool write_message(struct null_client *client, const struct shootout_text *text) {
  size_t total;
  uint8_t opcode = protocol_of(client) == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT;
  uint8_t *out = null_client_begin(client, opcode, text->len, &total);
  if (!out) return false;
  shootout_put(out, text);
  stream_commit(&client->stream, total);
  return true;
}

static bool join(struct null_client *client) {
  struct hub_seat seat = {.client = client};
  return client->topics > 0 || hub_join(&client->house->hub, view_str(CHANNEL), &seat);
}

static bool on_broadcast(struct null_client *client, const struct shootout_message *message) {
  struct shootout_text text;
  shootout_fan_out(&text, protocol_of(client), message->payload);
  const struct hub_topic *topic = hub_find(&client->house->hub, view_str(CHANNEL));
  for (uint32_t i = 0; topic && i < topic->seats; i++)
    write_message(topic->seat[i].client, &text);
  shootout_answer(&text, protocol_of(client), SHOOTOUT_RESULT, message);
  return write_message(client, &text);
}

static bool on_message(struct null_client *client, const struct ws_event *event) {
  struct shootout_message message;
  struct shootout_text text;
  if (!shootout_read_request(protocol_of(client), event->data, event->len, &message)) return false;
  switch (message.kind) {
  case SHOOTOUT_ECHO:
    shootout_answer(&text, protocol_of(client), SHOOTOUT_ECHO, &message);
    return write_message(client, &text);
  case SHOOTOUT_BROADCAST:
    return on_broadcast(client, &message);
  case SHOOTOUT_JOIN:
    if (!join(client)) return false;
    shootout_confirm(&text, protocol_of(client), &message);
    return write_message(client, &text);
  case SHOOTOUT_HEARTBEAT:
    shootout_confirm(&text, protocol_of(client), &message);
    return write_message(client, &text);
  default: /* a good-bye, or what no client says */
    return false;
  }
}

/* Of Phoenix and ActionCable a client joins by itself. */
static bool on_opened(struct null_client *client) {
  struct view welcome = shootout_welcome();
  struct shootout_text text = {.piece = {welcome}, .count = 1, .len = welcome.len};
  enum shootout_protocol protocol = protocol_of(client);
  if (protocol == SHOOTOUT_CABLE) return write_message(client, &text);
  return protocol == SHOOTOUT_PHOENIX || join(client);
}

const struct null_dialect null_shootout_json = {
    .driver = "shootout-json",
    .scheme = "ws+json",
    .topologies = TOPOLOGIES,
    .opened = on_opened,
    .message = on_message,
};

const struct null_dialect null_shootout_binary = {
    .driver = "shootout-binary",
    .scheme = "ws+binary",
    .topologies = TOPOLOGIES,
    .opened = on_opened,
    .message = on_message,
};

const struct null_dialect null_shootout_phoenix = {
    .driver = "shootout-phoenix",
    .scheme = "ws+phoenix",
    .topologies = TOPOLOGIES,
    .opened = on_opened,
    .message = on_message,
};

const struct null_dialect null_shootout_cable = {
    .driver = "shootout-actioncable",
    .scheme = "ws+cable",
    .topologies = TOPOLOGIES,
    .opened = on_opened,
    .message = on_message,
};
