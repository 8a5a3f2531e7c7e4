/* A node: its sockets and listeners, the dials that wait for their turn, which connection a packet belongs to, and what
 * is done at the end of a turn. */
#include "net/libp2p/node.h"

#include "net/loop_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CID_BYTES = 8, BUCKETS_MIN = 64 };

#define UDX_WINDOW_MAX (1U << 20)

/* --- lists ---------------------------------------------------------------------------------------------------------
 */

static struct conn_link *link_at(struct libp2p_conn *conn, size_t offset) {
  return (struct conn_link *)((char *)conn + offset);
}

void conn_list_append(struct conn_list *list, struct libp2p_conn *conn, size_t link_offset) {
  struct conn_link *link = link_at(conn, link_offset);
  *link = (struct conn_link){.before = list->last};
  *(list->last ? &link_at(list->last, link_offset)->after : &list->first) = conn;
  list->last = conn;
}

void conn_list_remove(struct conn_list *list, struct libp2p_conn *conn, size_t link_offset) {
  struct conn_link *link = link_at(conn, link_offset);
  *(link->before ? &link_at(link->before, link_offset)->after : &list->first) = link->after;
  *(link->after ? &link_at(link->after, link_offset)->before : &list->last) = link->before;
}

#define SETUP_LINK offsetof(struct libp2p_conn, setup)
#define ALL_LINK offsetof(struct libp2p_conn, all)

void node_ask_hook(struct libp2p *node) {
  loop_before_flush(node->loop, &node->hook);
}

void node_mark_dirty(struct libp2p_conn *conn) {
  struct libp2p *node = conn->node;
  if (conn->is_dirty || conn->state == CONN_OVER) return;
  conn->is_dirty = true;
  conn->next_dirty = node->dirty;
  node->dirty = conn;
  node_ask_hook(node);
}

/* --- connections by their id ----------------------------------------------------------------------------------------
 */

static struct libp2p_conn **bucket_of(const struct libp2p *node, const struct udx_cid *cid) {
  uint8_t hash[crypto_shorthash_BYTES];
  uint32_t value;
  _Static_assert(sizeof node->hash_key == crypto_shorthash_KEYBYTES, "SipHash");
  crypto_shorthash(hash, cid->bytes, cid->len, node->hash_key);
  memcpy(&value, hash, sizeof value);
  return &node->buckets[value & node->bucket_mask];
}

static struct libp2p_conn *find_conn(const struct libp2p *node, const struct udx_cid *cid) {
  struct libp2p_conn *conn = *bucket_of(node, cid);
  for (; conn; conn = conn->next_in_bucket) {
    const struct udx_cid *local = udx_local_cid(conn->udx);
    if (local->len == cid->len && memcmp(local->bytes, cid->bytes, cid->len) == 0) return conn;
  }
  return NULL;
}

static void add_to_bucket(struct libp2p *node, struct libp2p_conn *conn) {
  struct libp2p_conn **bucket = bucket_of(node, udx_local_cid(conn->udx));
  conn->next_in_bucket = *bucket;
  *bucket = conn;
}

/* Twice as many; without memory for them chains just get longer. */
static void grow_buckets(struct libp2p *node) {
  uint32_t count = node->bucket_mask + 1;
  struct libp2p_conn **old = node->buckets, **grown = calloc((size_t)count * 2, sizeof(struct libp2p_conn *));
  if (!grown) return;
  node->buckets = grown;
  node->bucket_mask = count * 2 - 1;
  for (uint32_t i = 0; i < count; i++) {
    for (struct libp2p_conn *conn = old[i], *next; conn; conn = next) {
      next = conn->next_in_bucket;
      add_to_bucket(node, conn);
    }
  }
  free(old);
}

void node_forget(struct libp2p_conn *conn) {
  if (!conn->udx) return;
  struct libp2p_conn **link = bucket_of(conn->node, udx_local_cid(conn->udx));
  while (*link != conn)
    link = &(*link)->next_in_bucket;
  *link = conn->next_in_bucket;
}

static bool make_udx(
    struct libp2p_conn *conn, struct udp *udp, const struct udx_cid *local, const struct udx_cid *remote) {
  struct libp2p *node = conn->node;
  struct udx_options options = {.ops = &conn_udx_ops,
      .user = conn,
      .pool = node->pool,
      .local = *local,
      .remote = *remote,
      .dialer = conn->is_dialer,
      .datagram_max = node->config.datagram_max,
      .streams_max = 1,
      .window_max = UDX_WINDOW_MAX};
  conn->udp = udp;
  conn->udx = udx_create(&options, loop_now_ns(node->loop));
  if (!conn->udx) return false;
  if (node->conn_count > node->bucket_mask) grow_buckets(node);
  add_to_bucket(node, conn);
  return true;
}

/* --- dialing --------------------------------------------------------------------------------------------------------
 */

/* The socket for dialing, made when it is first needed; NULL with err set. */
static struct udp *dial_socket(struct libp2p *node, sa_family_t family, struct err *err);

static void begin_udx(struct libp2p_conn *conn) {
  struct udx_cid local = {.len = CID_BYTES}, remote = {.len = CID_BYTES};
  conn->is_dialing = true;
  conn->state = CONN_SECURING;
  conn->node->dialing_count++;
  conn_list_append(&conn->node->dialing, conn, SETUP_LINK);
  conn->setup_due_ns = loop_now_ns(conn->node->loop) + conn->node->config.setup_deadline_ns;
  randombytes_buf(local.bytes, CID_BYTES);
  randombytes_buf(remote.bytes, CID_BYTES);
  if (make_udx(conn, conn->udp, &local, &remote)) conn->udx_stream = udx_open_stream(conn->udx);
  if (conn->udx_stream) {
    conn_secure(conn);
  } else {
    conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
  }
}

static void begin_dials(struct libp2p *node) {
  while (node->queued.first && node->dialing_count < node->config.dials_at_once) {
    struct libp2p_conn *conn = node->queued.first;
    conn_list_remove(&node->queued, conn, SETUP_LINK);
    begin_udx(conn);
  }
}

void node_end_dialing(struct libp2p_conn *conn) {
  struct libp2p *node = conn->node;
  if (conn->is_dialing) {
    conn->is_dialing = false;
    node->dialing_count--;
    conn_list_remove(&node->dialing, conn, SETUP_LINK);
    if (node->queued.first) node_ask_hook(node);
  } else if (conn->transport == MULTIADDR_UDX && conn->is_dialer && !conn->udx) {
    conn_list_remove(&node->queued, conn, SETUP_LINK);
  }
}

static enum status begin_tcp(struct libp2p_conn *conn, struct err *err) {
  conn->state = CONN_CONNECTING;
  const struct address *from = conn->node->config.from;
  bool fits = from && from->storage.ss_family == conn->address.storage.ss_family;
  return stream_connect(
      &conn->tcp, conn->node->loop, &conn_tcp_ops, &conn->address, fits ? from : NULL, NULL, NULL, err);
}

static enum status begin_dial(struct libp2p_conn *conn, struct err *err) {
  struct libp2p *node = conn->node;
  if (conn->transport == MULTIADDR_TCP) {
    enum status status = begin_tcp(conn, err);
    if (status == STATUS_OK) conn_schedule(conn);
    return status;
  }
  conn->udp = dial_socket(node, conn->address.storage.ss_family, err);
  if (!conn->udp) return err ? err->status : STATUS_IO;
  conn->state = CONN_QUEUED;
  conn_list_append(&node->queued, conn, SETUP_LINK);
  node_ask_hook(node);
  return STATUS_OK;
}

enum status libp2p_dial(struct libp2p *node, const struct multiaddr *to, const struct address *address,
    const struct libp2p_identity *identity, const struct libp2p_conn_ops *ops, void *user, struct libp2p_conn **out,
    struct err *err) {
  struct err own;
  struct libp2p_conn *conn = conn_make(node, to->transport, true);
  if (!conn) return err_set(err, STATUS_MEMORY, "out of memory for a connection");
  conn->ops = ops;
  conn->user = user;
  conn->address = *address;
  if (identity) conn->identity = identity;
  conn->has_expected = to->has_peer;
  conn->channel.peer = to->peer;
  enum status status = begin_dial(conn, err ? err : &own);
  *out = status == STATUS_OK ? conn : NULL;
  if (status == STATUS_OK) return status;
  conn_list_remove(&node->all, conn, ALL_LINK);
  node->conn_count--;
  conn_free(conn);
  return status;
}

/* --- UDP ------------------------------------------------------------------------------------------------------------
 */

/* When there is no room, whoever has been setting up longest must go: a flood of SYNs locks nobody out. */
static bool make_room(struct libp2p *node) {
  if (node->accepted_count < node->config.connections_max) return true;
  if (!node->fresh.first) return false;
  conn_end(node->fresh.first, LIBP2P_TIMED_OUT, 0, "others needed its place");
  return true;
}

/* A connection that was accepted; NULL: memory is out. */
static struct libp2p_conn *make_accepted(
    struct libp2p *node, enum multiaddr_transport transport, enum conn_state state, const struct address *from) {
  struct libp2p_conn *conn = conn_make(node, transport, false);
  if (!conn) return NULL;
  conn->ops = node->config.incoming;
  conn->user = node->config.user;
  conn->address = *from;
  conn->state = (uint8_t)state;
  conn->is_new = true;
  conn_list_append(&node->fresh, conn, SETUP_LINK);
  return conn;
}

void node_end_accepting(struct libp2p_conn *conn) {
  if (!conn->is_new) return;
  conn->is_new = false;
  conn_list_remove(&conn->node->fresh, conn, SETUP_LINK);
}

/* A packet of somebody new: a connection when it opens one. */
static struct libp2p_conn *accept_udx(struct udp *udp, const struct udx_packet *packet, const struct address *from) {
  struct libp2p *node = udp->user;
  bool syn, listens = udp != node->dial_sockets[0] && udp != node->dial_sockets[1];
  if (!listens || !udx_bears_data(packet->frames, &syn) || !syn) return NULL;
  struct libp2p_conn *conn = make_room(node) ? make_accepted(node, MULTIADDR_UDX, CONN_SECURING, from) : NULL;
  if (!conn) return NULL;
  if (make_udx(conn, udp, &packet->to, &packet->from)) {
    conn_schedule(conn);
    return conn;
  }
  conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
  return NULL;
}

static void datagram_received(struct udp *udp, uint8_t *data, size_t len, const struct address *from) {
  struct libp2p *node = udp->user;
  struct udx_packet packet;
  bool good = udx_read_packet(data, len, &packet);
  struct libp2p_conn *conn = good ? find_conn(node, &packet.to) : NULL;
  if (good && !conn) conn = accept_udx(udp, &packet, from);
  if (!conn) {
    node->dropped++;
    return;
  }
  udx_received(conn->udx, &packet, loop_now_ns(node->loop));
  conn_check_udx(conn);
  node_mark_dirty(conn);
}

static bool same_address(const struct address *a, const struct address *b) {
  return a->len == b->len && memcmp(&a->storage, &b->storage, a->len) == 0;
}

static void end_unreachable(struct libp2p_conn *conn, int error) {
  bool refused = error == ECONNREFUSED;
  if (conn->state == CONN_OPEN) {
    /* Only a closed port is a sure sign of the end. */
    if (refused) conn_end(conn, LIBP2P_RESET, (uint32_t)error, "nobody listens at the peer's port any more");
  } else {
    conn_end(conn, refused ? LIBP2P_REFUSED : LIBP2P_UNREACHABLE, (uint32_t)error,
        refused ? "nobody listens there" : strerror(error));
  }
}

static void address_unreachable(struct udp *udp, const struct address *to, int error) {
  struct libp2p *node = udp->user;
  if (error == EMSGSIZE) return; /* a probe that was too long */
  /* Callbacks may end any connection: begin anew after each. */
  for (bool found = true; found;) {
    found = false;
    for (struct libp2p_conn *conn = node->all.first; conn && !found; conn = conn->all.after) {
      bool concerned = conn->udp == udp && conn->udx && same_address(&conn->address, to);
      if (!concerned || (conn->state == CONN_OPEN && error != ECONNREFUSED)) continue;
      end_unreachable(conn, error);
      found = true;
    }
  }
}

static void socket_writable(struct udp *udp) {
  struct libp2p *node = udp->user;
  for (struct libp2p_conn *conn = node->all.first; conn; conn = conn->all.after) {
    if (conn->udp == udp && conn->udx) node_mark_dirty(conn);
  }
}

static const struct udp_ops udp_ops = {
    .received = datagram_received, .unreachable = address_unreachable, .writable = socket_writable};

static struct udp *open_socket(struct libp2p *node, struct address *address, bool joins, struct err *err) {
  struct udp *udp = &node->sockets[node->socket_count];
  bool whole = node->config.datagram_max > UDX_DATAGRAM_BYTES;
  enum status status = udp_open(udp, node->loop, &udp_ops, address, joins, whole, node->config.without_offload, err);
  if (status != STATUS_OK) return NULL;
  udp->user = node;
  node->socket_count++;
  return udp;
}

static struct udp *dial_socket(struct libp2p *node, sa_family_t family, struct err *err) {
  struct udp **socket = &node->dial_sockets[family == AF_INET6];
  const struct address *from = node->config.from;
  struct address address = {.len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)};
  if (*socket) return *socket;
  address.storage.ss_family = family;
  if (from && from->storage.ss_family == family) address = *from;
  *socket = open_socket(node, &address, false, err);
  return *socket;
}

/* --- listening ------------------------------------------------------------------------------------------------------
 */

static void tcp_accepted(struct listener *listener, int fd, const struct address *peer) {
  struct libp2p *node = ((struct node_listener *)listener)->node;
  struct libp2p_conn *conn = make_room(node) ? make_accepted(node, MULTIADDR_TCP, CONN_CONNECTING, peer) : NULL;
  if (!conn) {
    close(fd);
    return;
  }
  if (stream_accept(&conn->tcp, node->loop, &conn_tcp_ops, fd, NULL, NULL) == STATUS_OK) return;
  conn_end(conn, LIBP2P_RESET, 0, "the connection could not be watched");
}

static enum status listen_tcp(struct libp2p *node, struct address *address, bool joins, struct err *err) {
  struct listener *listener = &node->listeners[node->listener_count].listener;
  *listener = (struct listener){.watch.fd = -1, .joins = joins, .accepted = tcp_accepted};
  node->listeners[node->listener_count].node = node;
  enum status status = listener_open(listener, node->loop, address, err);
  if (status == STATUS_OK) node->listener_count++;
  return status;
}

static void note_address(struct libp2p *node, enum multiaddr_transport transport, const struct address *address) {
  struct multiaddr *out = &node->addresses[node->address_count++];
  char text[64];
  *out = (struct multiaddr){.transport = transport};
  address_text(address, text, sizeof text);
  char *colon = strrchr(text, ':'), *host = text;
  if (!colon) return;
  *colon = 0;
  if (*host == '[') {
    host++;
    colon[-1] = 0;
  }
  strncpy(out->host, host, sizeof out->host - 1);
  out->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

enum status libp2p_listen(
    struct libp2p *node, enum multiaddr_transport transport, struct address *address, bool joins, struct err *err) {
  struct err own = {0};
  if (!err) err = &own;
  if (node->address_count == NODE_LISTENERS_MAX)
    return err_set(err, STATUS_USAGE, "a libp2p node listens on at most %d addresses", NODE_LISTENERS_MAX);
  if (!node->config.identity) return err_set(err, STATUS_USAGE, "a libp2p node without an identity cannot listen");
  enum status status = STATUS_OK;
  if (transport == MULTIADDR_TCP) {
    status = listen_tcp(node, address, joins, err);
  } else if (!open_socket(node, address, joins, err)) {
    status = err->status;
  }
  if (status == STATUS_OK) note_address(node, transport, address);
  return status;
}

/* --- life -----------------------------------------------------------------------------------------------------------
 */

static void flush_dirty(struct libp2p *node) {
  struct libp2p_conn *rest = node->dirty;
  node->dirty = NULL;
  while (rest) {
    struct libp2p_conn *conn = rest;
    rest = conn->next_dirty;
    conn->is_dirty = false;
    conn_flush(conn);
  }
}

static void free_over(struct libp2p *node) {
  /* One that is over may be among the dirty still, when a flush ended it: those wait for the next turn. */
  struct libp2p_conn **link = &node->over;
  while (*link) {
    struct libp2p_conn *conn = *link;
    if (conn->is_dirty) {
      link = &conn->next_over;
      node_ask_hook(node);
    } else {
      *link = conn->next_over;
      conn_free(conn);
    }
  }
}

static void end_of_turn(struct loop_hook *hook) {
  struct libp2p *node = (struct libp2p *)((char *)hook - offsetof(struct libp2p, hook));
  streams_run_resumes(node);
  begin_dials(node);
  flush_dirty(node);
  for (uint8_t i = 0; i < node->socket_count; i++)
    udp_flush(&node->sockets[i]);
  free_over(node);
}

static void or_default(uint32_t *value, uint32_t standard) {
  if (!*value) *value = standard;
}

static void fill_in(struct libp2p_config *config) {
  or_default(&config->connections_max, 10000);
  or_default(&config->streams_max, 512);
  or_default(&config->dials_at_once, 8);
  or_default(&config->out_max, 16U << 20);
  or_default(&config->datagram_max, UDX_DATAGRAM_BYTES);
  if (config->datagram_max < UDX_DATAGRAM_MIN) config->datagram_max = UDX_DATAGRAM_MIN;
  if (config->datagram_max > UDX_DATAGRAM_MAX) config->datagram_max = UDX_DATAGRAM_MAX;
  if (!config->setup_deadline_ns) config->setup_deadline_ns = 15 * NS_PER_SEC;
  if (!config->keep_alive_ns) config->keep_alive_ns = 15 * NS_PER_SEC;
}

static void free_node(struct libp2p *node) {
  while (node->spare_streams) {
    struct libp2p_stream *stream = node->spare_streams;
    node->spare_streams = stream->next_resume;
    free(stream);
  }
  udx_pool_destroy(node->pool);
  buf_free(&node->scratch);
  free(node->buckets);
  free(node);
}

enum status libp2p_create(struct libp2p **out, struct loop *loop, const struct libp2p_config *config, struct err *err) {
  if (sodium_init() < 0) return err_set(err, STATUS_IO, "libsodium finds no source of random numbers");
  struct libp2p *node = calloc(1, sizeof *node);
  if (!node) return err_set(err, STATUS_MEMORY, "out of memory for a libp2p node");
  node->loop = loop;
  node->config = *config;
  node->hook.run = end_of_turn;
  fill_in(&node->config);
  randombytes_buf(node->hash_key, sizeof node->hash_key);
  node->pool = udx_pool_create();
  node->bucket_mask = BUCKETS_MIN - 1;
  node->buckets = calloc(BUCKETS_MIN, sizeof(struct libp2p_conn *));
  if (!node->pool || !node->buckets) {
    free_node(node);
    return err_set(err, STATUS_MEMORY, "out of memory for a libp2p node");
  }
  *out = node;
  return STATUS_OK;
}

void libp2p_close(struct libp2p *node) {
  if (!node) return;
  for (uint8_t i = 0; i < node->listener_count; i++)
    listener_close(&node->listeners[i].listener);
  while (node->all.first) {
    struct libp2p_conn *conn = node->all.first;
    if (conn->state == CONN_OPEN) mux_go_away(&conn->mux, YAMUX_NORMAL);
    conn_end(conn, LIBP2P_CLOSED, 0, "closed by us");
  }
  for (uint8_t i = 0; i < node->socket_count; i++)
    udp_close(&node->sockets[i]);
  while (node->over) {
    struct libp2p_conn *conn = node->over;
    node->over = conn->next_over;
    conn_free(conn);
  }
  loop_forget_hook(node->loop, &node->hook);
  free_node(node);
}

void libp2p_stats(const struct libp2p *node, struct libp2p_stats *out) {
  *out = (struct libp2p_stats){
      .dropped = node->dropped, .resent = udx_pool_resent(node->pool), .connections = node->conn_count};
  for (uint8_t i = 0; i < node->socket_count; i++) {
    const struct udp_counts *counts = &node->sockets[i].counts;
    out->datagrams_in += counts->datagrams_in;
    out->datagrams_out += counts->datagrams_out;
    out->bytes_in += counts->bytes_in;
    out->bytes_out += counts->bytes_out;
    out->receive_calls += counts->receive_calls;
    out->send_calls += counts->send_calls;
  }
}
