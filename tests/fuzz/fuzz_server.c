// room: server
/* A gateway with its core behind it, as one client (alice) and an HTTP API caller can treat it: the input is a list of
 * steps, each an operation, a length and that many bytes. Bob is logged in too and only reads. What is looked for are
 * crashes, leaks, a core that fails, and a gateway that never comes to rest. */
#include "base/clock.h"
#include "server/api.h"
#include "server/gateway.h"
#include "server/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUTS_PER_SERVER = 2000, STEPS_MAX = 64, MESSAGE_MAX = 4096, TURNS_MAX = 400 };

#define APP "fuzzapp"

struct rig {
  char folder[64];
  struct server_config config;
  struct gateway gateway;
  struct gateway_port *port;
  struct core *core;
  struct metrics_source metrics;
  char alice[JUGGLE_TOKEN_MAX], bob[JUGGLE_TOKEN_MAX];
  unsigned inputs;
  bool running;
};

static struct rig rig;

static void require(bool condition) {
  if (!condition) abort();
}

/* ---- The server ---- */

static int32_t register_user(struct core *core, void *argument) {
  const struct core_user user = {.user_id = view_str(argument == rig.alice ? "alice" : "bob")};
  return core_user_register(core, view_str(APP), &user, argument);
}

static int32_t make_group(struct core *core, void *argument) {
  (void)argument;
  const struct view members[] = {view_str("alice"), view_str("bob"), view_str("carol")};
  return core_group_add(
      core, view_str(APP), &(struct core_group){.group_id = view_str("group"), .name = view_str("g")}, members, 3);
}

static int32_t make_room(struct core *core, void *argument) {
  (void)argument;
  return core_room_create(core, view_str(APP), view_str("room"), view_str("r"));
}

static void prepare(int32_t (*fn)(struct core *core, void *argument), void *argument) {
  int32_t code;
  require(core_call(rig.core, fn, argument, &code) == STATUS_OK && code == JUGGLE_OK);
}

static void remove_folder(void) {
  static const char *const files[] = {"musterd.db", "musterd.db-wal", "musterd.db-shm"};
  char path[128];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", rig.folder, files[i]);
    unlink(path);
  }
  rmdir(rig.folder);
}

static void stop_server(void) {
  if (!rig.running) return;
  rig.running = false;
  core_stop(rig.core);
  gateway_close(&rig.gateway);
  gateway_free(&rig.gateway);
  remove_folder();
}

static void start_server(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(rig.folder, sizeof rig.folder, "%s/muster-fuzz-XXXXXX", parent && strlen(parent) < 32 ? parent : "/tmp");
  require(mkdtemp(rig.folder));
  server_config_defaults(&rig.config);
  rig.config.data_dir = rig.folder;
  rig.config.ack = ACK_RECEIVED;
  rig.config.rate_limits = false;
  rig.config.push_window = 2;
  rig.config.session_out_bytes = 4096;
  rig.config.message_max_bytes = MESSAGE_MAX;
  rig.config.chatroom_history = 4;
  rig.config.app_key = APP;
  rig.config.app_secret = "0123456789abcdef";
  require(gateway_init(&rig.gateway, 0, &rig.config, NULL) == STATUS_OK);
  rig.port = &rig.gateway.port;
  require(core_start(&rig.core, &rig.config, &rig.port, 1, NULL) == STATUS_OK);
  rig.metrics = (struct metrics_source){.gateways = &rig.gateway,
      .gateway_count = 1,
      .core = rig.core,
      .data_dir = rig.folder,
      .started_ns = clock_now_ns()};
  struct door_addresses addresses;
  require(door_addresses_read("127.0.0.1", NULL, 0, &addresses, NULL) == STATUS_OK);
  rig.gateway.core = rig.core;
  rig.gateway.metrics = &rig.metrics;
  rig.gateway.addresses = &addresses;
  require(gateway_open(&rig.gateway, NULL) == STATUS_OK);
  rig.running = true;
  rig.inputs = 0;
  prepare(register_user, rig.alice);
  prepare(register_user, rig.bob);
  prepare(make_group, NULL);
  prepare(make_room, NULL);
}

/* The group and the room are there for each input, and alice is a member. */
static void refresh_server(void) {
  static bool registered;
  if (!registered) atexit(stop_server);
  registered = true;
  if (rig.running && rig.inputs++ == INPUTS_PER_SERVER) stop_server();
  if (!rig.running) {
    start_server();
    return;
  }
  prepare(make_group, NULL);
  prepare(make_room, NULL);
}

/* ---- Connections ---- */

static bool is_busy(void) {
  const struct slab *slab = &rig.gateway.slab;
  for (uint32_t i = 0; i < slab->used; i++) {
    const struct session *session = slab_at(slab, i);
    if (session->state == SESSION_LOGGING_IN || (session->state == SESSION_OPEN && session->requests)) return true;
  }
  return false;
}

static bool any_session(void) {
  const struct slab *slab = &rig.gateway.slab;
  for (uint32_t i = 0; i < slab->used; i++)
    if (slab_at(slab, i)->state != SESSION_FREE) return true;
  return false;
}

static void empty_socket(int fd) {
  uint8_t bytes[16384];
  while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
}

struct client {
  int fd;
  bool obfuscated, reads;
  struct juggle_key key;
};

static struct client alice, bob;

static void turn(void) {
  loop_turn(rig.gateway.loop, 0);
  if (bob.reads) empty_socket(bob.fd);
  if (alice.reads) empty_socket(alice.fd);
}

/* Until the core has answered all that was asked. */
static void settle(void) {
  for (int i = 0; i < 3; i++)
    turn();
  for (int i = 0; i < TURNS_MAX && is_busy(); i++) {
    loop_turn(rig.gateway.loop, clock_now_ns() + 5 * NS_PER_MS);
    turn();
  }
  require(!core_failed(rig.core, NULL));
}

static void put(const struct client *client, const uint8_t *data, size_t len) {
  for (int i = 0; i < 8 && len; i++) {
    ssize_t sent = send(client->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return;
    if (sent > 0) data += sent, len -= (size_t)sent;
    turn();
  }
}

static void put_frame(const struct client *client, uint8_t first, const uint8_t *message, size_t len) {
  static const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
  uint8_t frame[WS_HEADER_MAX + 2 * MESSAGE_MAX];
  if (len > 2 * MESSAGE_MAX) return;
  size_t head = ws_write_header(frame, WS_BINARY, len, mask);
  frame[0] = first;
  if (len) memcpy(frame + head, message, len);
  ws_mask(frame + head, len, mask, 0);
  put(client, frame, head + len);
}

/* An envelope of the client's mode around a body. */
static void put_body(const struct client *client, int32_t cmd, const uint8_t *body, size_t len) {
  uint8_t message[2 * MESSAGE_MAX];
  size_t head = juggle_envelope_head_size(cmd, 1, len, client->obfuscated);
  if (head + len > sizeof message) return;
  uint8_t *at = juggle_write_envelope_head(message, cmd, 1, len, client->obfuscated);
  if (len) memcpy(at, body, len);
  if (client->obfuscated) juggle_xor(at, len, &client->key);
  put_frame(client, 0x80 | WS_BINARY, message, head + len);
}

static void put_request(const struct client *client, int32_t cmd, const struct juggle_request *request) {
  uint8_t body[MESSAGE_MAX + 512];
  if (juggle_request_size(request) > sizeof body) return;
  put_body(client, cmd, body, (size_t)(juggle_write_request(body, request) - body));
}

static void open_client(struct client *client, bool obfuscated) {
  int pair[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  require(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
  *client = (struct client){.fd = pair[1], .obfuscated = obfuscated, .key.byte = {1, 2, 3, 4, 5, 6, 7, 8}};
  session_accept(&rig.gateway, pair[0]);
}

static void upgrade(const struct client *client) {
  static const char head[] = "GET /im HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  put(client, (const uint8_t *)head, sizeof head - 1);
}

static void log_in(const struct client *client, const char *token, const char *platform) {
  const struct juggle_connect connect = {.proto_id = view_str("jug9le1m"),
      .appkey = view_str(APP),
      .token = view_str(token),
      .device_id = view_str("d"),
      .platform = view_str(platform)};
  uint8_t body[1024];
  require(juggle_connect_size(&connect) <= sizeof body);
  put_body(client, JUGGLE_CONNECT, body, (size_t)(juggle_write_connect(body, &connect) - body));
}

static void end_client(struct client *client) {
  close(client->fd);
  *client = (struct client){.fd = -1};
}

/* ---- Steps ---- */

static const char *const topics[] = {"p_msg", "g_msg", "s_msg", "c_msg", "c_join", "c_quit", "c_sync_msgs", "sync_msgs",
    "qry_hismsgs", "qry_hismsg_by_ids", "qry_convers", "sync_convers", "qry_conver", "qry_total_unread_count",
    "clear_unread", "qry_user_info", "qry_online_status", "nothing", ""};
static const char *const targets[] = {"bob", "alice", "group", "room", "carol", "nobody", "", "p\x01\xff"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* First byte: topic; second: target, its upper half the index. */
static void step_request(int32_t cmd, const uint8_t *data, size_t len) {
  if (len < 2) return;
  struct juggle_request request = {
      .index = data[1] >> 4,
      .topic = view_str(topics[data[0] % COUNT(topics)]),
      .target = view_str(targets[data[1] % COUNT(targets)]),
      .data = view_of(data + 2, len - 2),
  };
  put_request(&alice, cmd, &request);
}

static void step_api(const uint8_t *data, size_t len) {
  static const struct api_endpoint *const lists[] = {
      api_user_endpoints, api_group_endpoints, api_message_endpoints, api_chatroom_endpoints};
  if (len < 2) return;
  const struct api_endpoint *endpoint = lists[data[0] % COUNT(lists)];
  for (uint8_t i = data[1] & 15; i && endpoint[1].path; i--)
    endpoint++;
  const struct rest_request request = {.method = endpoint->method, .path = endpoint->path};
  struct api_call call = {.core = rig.core, .app_key = view_str(APP), .request = &request};
  if (strcmp(endpoint->method, "POST") == 0) {
    call.body = json_loadb((const char *)data + 2, len - 2, 0, NULL);
    if (json_is_object(call.body)) endpoint->handle(&call);
  } else {
    endpoint->handle(&call);
  }
  json_decref(call.body);
  json_decref(call.data);
}

static void step(uint8_t operation, const uint8_t *data, size_t len) {
  switch (operation & 15) {
  case 0:
    put(&alice, data, len);
    return;
  case 1:
    put_frame(&alice, 0x80 | WS_BINARY, data, len);
    return;
  case 2:
    step_request(JUGGLE_PUBLISH, data, len);
    return;
  case 3:
    step_request(JUGGLE_QUERY, data, len);
    return;
  case 4:
    if (len) put_body(&alice, data[0] & 15, data + 1, len - 1);
    return;
  case 5:
    if (len) put_frame(&alice, data[0], data + 1, len - 1);
    return;
  case 6:
    alice.reads = !alice.reads;
    return;
  case 7:
    step_api(data, len);
    return;
  case 8:
    settle();
    return;
  case 9:
    end_client(&alice);
    open_client(&alice, operation & 16);
    upgrade(&alice);
    log_in(&alice, rig.alice, operation & 32 ? "Android" : "Web");
    settle();
    return;
  default:
    turn();
  }
}

static void take_steps(const uint8_t *data, size_t size) {
  for (int i = 0; i < STEPS_MAX && size >= 2; i++) {
    size_t len = data[1] < size - 2 ? data[1] : size - 2;
    /* A long step takes all that is left. */
    if (data[0] & 0x80) len = size - 2;
    step(data[0] & 0x7f, data + 2, len);
    data += 2 + len;
    size -= 2 + len;
  }
}

static void close_all(void) {
  end_client(&alice);
  end_client(&bob);
  for (int i = 0; i < TURNS_MAX && any_session(); i++)
    loop_turn(rig.gateway.loop, clock_now_ns() + NS_PER_MS);
  require(!any_session());
}

/* First byte: bit 0 obfuscated, bit 1 logged in, bit 2 upgraded. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  refresh_server();
  open_client(&bob, false);
  open_client(&alice, data[0] & 1);
  bob.reads = true;
  upgrade(&bob);
  log_in(&bob, rig.bob, "Web");
  if (data[0] & 6) upgrade(&alice);
  if (data[0] & 2) log_in(&alice, rig.alice, "Web");
  settle();
  take_steps(data + 1, size - 1);
  settle();
  close_all();
  return 0;
}
