/* A protocol of three records each way, its driver, and a server that breaks what it is told to break, in exact
 * numbers. What it breaks depends on how many publishes came or on a sender's own numbers, never on time. */
#ifndef MUSTER_TESTS_UNIT_LOAD_FAULTY_SERVER_H
#define MUSTER_TESTS_UNIT_LOAD_FAULTY_SERVER_H

#include "base/clock.h"
#include "driver/driver.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/timer.h"
#include "wire/payload.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a protocol of three records each way --- */

#define PAYLOAD 128
#define HELLO_BYTES 5      /* 'H' index */
#define PUBLISH_BYTES 137  /* 'P' token recipient payload */
#define ACK_BYTES 6        /* 'A' token code */
#define DELIVERY_BYTES 129 /* 'D' payload; 'E' alone: established */
#define STALL_BYTES 2      /* 'S' tens of ms for which the client's worker does nothing */
#define REPLY_BYTES 64     /* of a client to 'Q', as a Pong would be */
#define TO_GROUP UINT32_MAX
#define CLIENTS 10
#define REJECTION 7

static struct address server_address;
static bool server_redelivers;
static bool overlaps; /* what comes may have come before, by another way */

static enum status prepare(struct driver_run *run, struct err *err) {
  (void)err;
  run->address = server_address;
  run->redelivers = server_redelivers;
  return STATUS_OK;
}

static void release(struct driver_run *run) {
  (void)run;
}

static void opened(struct client *client) {
  uint8_t hello[HELLO_BYTES] = {'H'};
  memcpy(hello + 1, &client->index, 4);
  stream_write(&client->stream, hello, sizeof(hello));
}

/* A window of one publish, for who asks for it. */
struct window {
  bool is_full;
};

static struct window *window_of(struct client *client) {
  return client_state(client);
}

/* The length of the record at data, 0 when it is not whole yet, -1 when it is none. */
static int record_length(const uint8_t *data, size_t len) {
  int whole = data[0] == 'E' || data[0] == 'Q' ? 1
              : data[0] == 'S'                 ? STALL_BYTES
              : data[0] == 'A'                 ? ACK_BYTES
              : data[0] == 'D'                 ? DELIVERY_BYTES
                                               : -1;
  return whole > 0 && (size_t)whole > len ? 0 : whole;
}

static size_t received(struct client *client, uint8_t *data, size_t len) {
  size_t used = 0;
  while (used < len) {
    const uint8_t *at = data + used;
    int whole = record_length(at, len - used);
    if (whole < 0) {
      client->hooks->failed(client, CAUSE_PROTOCOL);
      return 0;
    }
    if (whole == 0) break;
    uint32_t token = 0;
    if (whole == ACK_BYTES) memcpy(&token, at + 1, sizeof token);
    if (at[0] == 'E') client->hooks->established(client);
    if (at[0] == 'S') usleep(at[1] * 10000U);
    if (at[0] == 'Q') stream_write(&client->stream, (uint8_t[REPLY_BYTES]){'R'}, REPLY_BYTES);
    if (at[0] == 'A') window_of(client)->is_full = false;
    if (at[0] == 'A') client->hooks->acked(client, token, at[5]);
    if (at[0] == 'D') client->hooks->delivered(client, view_of(at + 1, PAYLOAD), overlaps);
    used += (size_t)whole;
  }
  return used;
}

static enum publish_result publish(struct client *client, const struct publish *publish) {
  uint8_t *at = stream_reserve(&client->stream, PUBLISH_BYTES);
  uint32_t recipient = publish->to == PUBLISH_TO_GROUP ? TO_GROUP : publish->recipient;
  if (!at) return PUBLISH_BLOCKED;
  at[0] = 'P';
  memcpy(at + 1, &publish->token, 4);
  memcpy(at + 5, &recipient, 4);
  payload_write(PAYLOAD_BINARY, at + 9, &publish->payload);
  stream_commit(&client->stream, PUBLISH_BYTES);
  return PUBLISH_WRITTEN;
}

static enum publish_result publish_slowly(struct client *client, const struct publish *what) {
  usleep(10000);
  return publish(client, what);
}

static enum publish_result publish_in_window(struct client *client, const struct publish *what) {
  if (window_of(client)->is_full) return PUBLISH_BLOCKED;
  enum publish_result result = publish(client, what);
  window_of(client)->is_full = result == PUBLISH_WRITTEN;
  return result;
}

static void nothing(struct client *client) {
  (void)client;
}

static const struct driver test_driver = {
    .name = "test",
    .schemes = "test",
    .title = "test protocol",
    .ack_meaning = "accepted",
    .delivery = "push",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ECHO | CAPABILITY_BACKLOG,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = 1000,
    .client_bytes = sizeof(struct window),
    .prepare = prepare,
    .release = release,
    .opened = opened,
    .received = received,
    .publish = publish,
    .closing = nothing,
    .released = nothing,
};

/* --- the server --- */

/* Each counts publishes of the measure phase: 0 never, n every n-th. */
struct faults {
  uint32_t lose, duplicate, corrupt, reject, reject_but_deliver, no_answer, foreign;
  uint32_t hold;     /* every n-th of a sender goes out behind its next one */
  int refuse_client; /* closes instead of establishing it; -1: none */
  bool refuse_all, silent;
  uint32_t deaf_client;    /* index + 1: is asked for replies of 256 MiB, which the server does not read */
  bool ack_elsewhere;      /* sender 2's publishes are acked to client 5, in a way that hits the same slot */
  uint32_t hang_up_at;     /* client 4's so-many-th publish: its connection is closed; 0: never */
  bool hang_up_on_return;  /* client 4's connection is closed on the first publish after it came back */
  uint32_t refuse_returns; /* so many of those who come back are closed first */
  bool refuse_every_return;
  bool ignore_returns;    /* neither refused nor let in */
  bool keep;              /* what goes to clients who were never in waits for their hello */
  uint32_t repeat_after;  /* so many publishes: a second later, all of them are delivered again; 0: never */
  uint32_t deliver_after; /* all deliveries wait until so many publishes are acked, and then 2 ms; 0: none waits */
  uint32_t forget_from;   /* of what was kept for client 9, all from this one on; 0: nothing */
  bool hold_a_worker;     /* the second one: see hold_back */
  uint32_t hang_up_on;    /* index + 1: is sent what was kept, and then closed */
};

#define KEPT_MAX 1024

struct kept {
  uint32_t recipient;
  uint8_t payload[PAYLOAD];
};

struct peer {
  struct stream stream;
  uint32_t index;
  bool is_member, is_back;
  uint8_t held[PAYLOAD]; /* goes out behind the next delivery */
  bool holds;
};

struct test_server {
  struct loop *loop;
  struct listener listener;
  struct peer *peer[CLIENTS + 1024]; /* who is refused tries again and again */
  uint32_t peers;
  struct peer *client[CLIENTS];
  bool was_in[CLIENTS];
  uint32_t refused_returns;
  struct faults faults;
  uint32_t measured;
  struct kept kept[KEPT_MAX];
  uint32_t kept_count;
  struct timer holding;
  uint32_t holding_step;
};

static struct test_server *server; /* of the child process */

static void send_delivery(struct peer *peer, const uint8_t *payload) {
  uint8_t record[DELIVERY_BYTES] = {'D'};
  memcpy(record + 1, payload, PAYLOAD);
  stream_write(&peer->stream, record, sizeof(record));
}

static bool hits(uint32_t every) {
  return every > 0 && server->measured > 0 && server->measured % every == 0;
}

static void deliver_to(struct peer *peer, const uint8_t *payload, bool measured, bool holds) {
  const struct faults *faults = &server->faults;
  uint8_t bytes[PAYLOAD];
  memcpy(bytes, payload, PAYLOAD);
  if (!peer || (measured && hits(faults->lose))) return;
  if (measured && hits(faults->corrupt)) bytes[PAYLOAD - 1] ^= 1;
  if (holds) {
    memcpy(peer->held, bytes, PAYLOAD);
    peer->holds = true;
    return;
  }
  send_delivery(peer, bytes);
  if (measured && hits(faults->duplicate)) send_delivery(peer, bytes);
  if (peer->holds) send_delivery(peer, peer->held);
  peer->holds = false;
}

static void send_foreign(struct peer *peer, const struct payload *payload) {
  uint8_t bytes[PAYLOAD];
  struct payload other = *payload;
  other.run_id++;
  payload_write(PAYLOAD_BINARY, bytes, &other);
  send_delivery(peer, bytes);
}

static void send_ack(struct peer *peer, uint32_t token) {
  uint8_t ack[ACK_BYTES] = {'A'};
  memcpy(ack + 1, &token, 4);
  stream_write(&peer->stream, ack, sizeof(ack));
}

static bool hangs_up(const struct peer *peer, const struct payload *payload) {
  const struct faults *faults = &server->faults;
  if (payload->phase != PAYLOAD_MEASURE || payload->sender != 4) return false;
  return payload->sequence + 1 == faults->hang_up_at || (faults->hang_up_on_return && peer->is_back);
}

static void keep(uint32_t recipient, const uint8_t *payload) {
  if (server->kept_count == KEPT_MAX) return;
  struct kept *kept = &server->kept[server->kept_count++];
  kept->recipient = recipient;
  memcpy(kept->payload, payload, PAYLOAD);
}

static void deliver_kept(struct timer *timer, uint64_t now_ns) {
  (void)timer, (void)now_ns;
  for (uint32_t i = 0; i < server->kept_count; i++)
    send_delivery(server->client[server->kept[i].recipient], server->kept[i].payload);
}

static void deliver_kept_after(uint32_t publishes, uint64_t wait_ns) {
  if (server->measured != publishes) return;
  server->holding.fire = deliver_kept;
  timer_arm(loop_wheel(server->loop), &server->holding, clock_now_ns() + wait_ns);
}

static void on_publish(struct peer *peer, const uint8_t *record) {
  const struct faults *faults = &server->faults;
  struct payload payload;
  uint32_t recipient;
  memcpy(&recipient, record + 5, 4);
  payload_read(PAYLOAD_BINARY, record + 9, PAYLOAD, &payload);
  bool measured = payload.phase == PAYLOAD_MEASURE;
  if (measured) server->measured++;
  if (hangs_up(peer, &payload)) {
    server->faults.hang_up_on_return = false;
    server->client[peer->index] = NULL;
    stream_close(&peer->stream, false);
    return;
  }
  if (measured && faults->ack_elsewhere && peer->index == 2) {
    if (payload.sequence > 0) send_ack(server->client[5], payload.sequence * 2 - 1);
    return;
  }
  bool holds = measured && faults->hold > 0 && (payload.sequence + 1) % faults->hold == 0;
  bool rejects = measured && (hits(faults->reject) || hits(faults->reject_but_deliver));
  uint8_t ack[ACK_BYTES] = {'A'};
  memcpy(ack + 1, record + 1, 4);
  ack[5] = rejects ? REJECTION : 0;
  if (!(measured && hits(faults->no_answer))) stream_write(&peer->stream, ack, sizeof(ack));
  if (measured && faults->repeat_after > 0) {
    keep(recipient, record + 9);
    deliver_kept_after(faults->repeat_after, NS_PER_SEC);
  }
  if (measured && hits(faults->reject)) return;
  if (measured && faults->deliver_after > 0) {
    keep(recipient, record + 9);
    deliver_kept_after(faults->deliver_after, 2 * NS_PER_MS);
    return;
  }
  for (uint32_t i = 0; i < CLIENTS; i++) {
    bool addressed = recipient == TO_GROUP ? i != peer->index : i == recipient;
    if (addressed) deliver_to(server->client[i], record + 9, measured, holds);
    if (addressed && faults->keep && !server->was_in[i]) keep(i, record + 9);
  }
  if (measured && hits(faults->foreign)) send_foreign(peer, &payload);
}

static void ask_and_read_no_more(struct peer *peer) {
  enum { ASKED = 4 * 1024 * 1024 };
  uint8_t *room = stream_reserve(&peer->stream, ASKED);
  memset(room, 'Q', ASKED);
  stream_commit(&peer->stream, ASKED);
  stream_pause(&peer->stream);
}

static void send_kept(struct peer *peer) {
  uint32_t sent = 0;
  for (uint32_t i = 0; i < server->kept_count; i++) {
    if (server->kept[i].recipient != peer->index) continue;
    sent++;
    if (peer->index == CLIENTS - 1 && server->faults.forget_from > 0 && sent >= server->faults.forget_from) return;
    send_delivery(peer, server->kept[i].payload);
  }
}

static void stall(uint32_t client, uint8_t tens_of_ms) {
  stream_write(&server->client[client]->stream, (uint8_t[STALL_BYTES]){'S', tens_of_ms}, STALL_BYTES);
}

/* Clients 1 and 3 belong to the second of two workers, the last one to come in, 8, to the first. While the second
 * worker stalls, something comes for each of the two, so that it will serve both without a look at anything else, and
 * stalls again at the first of them. Then the run goes on, and what the first worker publishes gathers behind the
 * other. */
static void hold_back(struct timer *timer, uint64_t now_ns) {
  static const uint64_t next_ns[] = {20 * NS_PER_MS, 130 * NS_PER_MS};
  switch (server->holding_step++) {
  case 0:
    stall(1, 5);
    break;
  case 1:
    stall(1, 60);
    stall(3, 60);
    break;
  default:
    stream_write(&server->client[8]->stream, "E", 1);
    return;
  }
  timer_arm(loop_wheel(server->loop), timer, now_ns + next_ns[server->holding_step - 1]);
}

static bool holds_back(const struct peer *peer) {
  if (!server->faults.hold_a_worker || peer->index != 8) return false;
  server->holding.fire = hold_back;
  timer_arm(loop_wheel(server->loop), &server->holding, clock_now_ns() + 200 * NS_PER_MS);
  return true;
}

static void on_hello(struct peer *peer, const uint8_t *record) {
  memcpy(&peer->index, record + 1, 4);
  if (server->faults.silent) return;
  bool refused = server->faults.refuse_all || (int)peer->index == server->faults.refuse_client;
  if (server->was_in[peer->index] && server->refused_returns < server->faults.refuse_returns) {
    server->refused_returns++;
    refused = true;
  }
  refused |= server->was_in[peer->index] && server->faults.refuse_every_return;
  if (server->was_in[peer->index] && server->faults.ignore_returns) return;
  if (refused) {
    stream_close(&peer->stream, false);
    return;
  }
  send_kept(peer);
  if (server->faults.hang_up_on == peer->index + 1) {
    stream_close(&peer->stream, false);
    return;
  }
  peer->is_back = server->was_in[peer->index];
  server->was_in[peer->index] = true;
  peer->is_member = true;
  server->client[peer->index] = peer;
  if (!holds_back(peer)) stream_write(&peer->stream, "E", 1);
  if (server->faults.deaf_client == peer->index + 1) ask_and_read_no_more(peer);
}

static size_t server_received(struct stream *stream, uint8_t *data, size_t len) {
  struct peer *peer = (struct peer *)stream;
  size_t used = 0;
  while (used < len) {
    size_t whole = data[used] == 'H' ? HELLO_BYTES : PUBLISH_BYTES;
    if (len - used < whole) break;
    if (data[used] == 'H') {
      on_hello(peer, data + used);
    } else {
      on_publish(peer, data + used);
    }
    if (!stream_is_open(stream)) return 0;
    used += whole;
  }
  return used;
}

static void server_opened(struct stream *stream) {
  (void)stream;
}

static void server_closed(struct stream *stream, enum stream_end end, int error) {
  struct peer *peer = (struct peer *)stream;
  (void)end, (void)error;
  if (peer->is_member && server->client[peer->index] == peer) server->client[peer->index] = NULL;
}

static const struct stream_ops server_ops = {
    .opened = server_opened,
    .received = server_received,
    .closed = server_closed,
};

static void on_accepted(struct listener *listener, int fd, const struct address *peer_address) {
  (void)peer_address;
  struct peer *peer = calloc(1, sizeof(*peer));
  server->peer[server->peers++] = peer;
  stream_accept(&peer->stream, listener->loop, &server_ops, fd, NULL, NULL);
}

static void serve(const struct faults *faults, int ready) {
  signal(SIGSEGV, SIG_DFL); /* cmocka's handlers are not for children */
  server = calloc(1, sizeof(*server));
  server->faults = *faults;
  server->listener.accepted = on_accepted;
  loop_create(&server->loop, NULL);
  listener_open(&server->listener, server->loop, &server_address, NULL);
  if (write(ready, &server_address, sizeof(server_address)) != sizeof(server_address)) _exit(1);
  for (;;)
    loop_turn(server->loop, clock_now_ns() + NS_PER_SEC);
}

#endif
