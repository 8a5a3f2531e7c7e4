/* One connection: bytes of its link (a TCP stream, or the one stream of a UDX connection) through the channel into the
 * mux, and back; its times. */
#include "net/libp2p/node.h"

#include "net/loop_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SEAL_BYTES = 16 * 1024,      /* of plaintext in one message */
  LINK_BYTES_MAX = 128 * 1024, /* unsent bytes in the link before output waits in the mux */
  DATAGRAMS_AT_ONCE = 64,      /* of one connection in a turn, so that others have theirs */
};

_Static_assert(sizeof(struct libp2p_conn) + 800 <= LIBP2P_CONN_BYTES, "as peer.h says");

const char *libp2p_cause_text(enum libp2p_cause cause) {
  static const char *const texts[] = {[LIBP2P_CLOSED] = "closed by the peer",
      [LIBP2P_RESET] = "reset",
      [LIBP2P_REFUSED] = "refused",
      [LIBP2P_UNREACHABLE] = "unreachable",
      [LIBP2P_TIMED_OUT] = "timed out",
      [LIBP2P_INSECURE] = "not secure",
      [LIBP2P_NO_PROTOCOL] = "no common protocol",
      [LIBP2P_BROKEN] = "protocol broken",
      [LIBP2P_NO_MEMORY] = "out of memory"};
  bool known = cause >= LIBP2P_CLOSED && cause <= LIBP2P_NO_MEMORY;
  return known ? texts[cause] : "unknown";
}

static bool is_udx(const struct libp2p_conn *conn) {
  return conn->transport == MULTIADDR_UDX;
}

static void timer_fired(struct timer *timer, uint64_t now_ns);

struct libp2p_conn *conn_make(struct libp2p *node, enum multiaddr_transport transport, bool is_dialer) {
  struct libp2p_conn *conn = calloc(1, sizeof *conn);
  if (!conn) return NULL;
  conn->node = node;
  conn->transport = transport;
  conn->is_dialer = is_dialer;
  conn->tcp.watch.fd = -1;
  conn->timer.fire = timer_fired;
  conn->identity = node->config.identity;
  conn->setup_due_ns = loop_now_ns(node->loop) + node->config.setup_deadline_ns;
  conn->ping_due_ns = UINT64_MAX;
  mux_begin(&conn->mux, is_dialer, &streams_mux_ops, conn, node->config.out_max);
  conn_list_append(&node->all, conn, offsetof(struct libp2p_conn, all));
  node->conn_count++;
  if (!is_dialer) node->accepted_count++;
  return conn;
}

void conn_free(struct libp2p_conn *conn) {
  udx_destroy(conn->udx);
  channel_free(&conn->channel);
  mux_free(&conn->mux);
  free(conn);
}

/* --- the link ---------------------------------------------------------------------------------------------------- */

static uint8_t *link_reserve(struct libp2p_conn *conn, size_t len) {
  if (!is_udx(conn)) return stream_reserve(&conn->tcp, len);
  return conn->udx_stream ? udx_reserve(conn->udx_stream, len) : NULL;
}

static void link_commit(struct libp2p_conn *conn, size_t len) {
  if (is_udx(conn)) {
    udx_commit(conn->udx_stream, len);
  } else {
    stream_commit(&conn->tcp, len);
  }
}

static size_t link_unsent(const struct libp2p_conn *conn) {
  return is_udx(conn) ? udx_unsent(conn->udx_stream) : stream_pending(&conn->tcp);
}

static bool link_write(struct libp2p_conn *conn, const struct buf *bytes) {
  if (!bytes->len) return true;
  uint8_t *room = link_reserve(conn, bytes->len);
  if (!room) return false;
  memcpy(room, bytes->data, bytes->len);
  link_commit(conn, bytes->len);
  node_mark_dirty(conn);
  return true;
}

/* Sends what the UDX connection has to send, at most a burst; false: more is to follow. */
static bool transmit(struct libp2p_conn *conn) {
  uint64_t now_ns = loop_now_ns(conn->node->loop);
  for (int i = 0; i < DATAGRAMS_AT_ONCE; i++) {
    uint8_t *room = udp_reserve(conn->udp);
    if (!room) return true; /* the socket tells when it can go on */
    size_t len = udx_transmit(conn->udx, room, UDP_DATAGRAM_MAX, now_ns);
    if (!len) return true;
    udp_commit(conn->udp, len, &conn->address);
  }
  return false;
}

/* --- output ------------------------------------------------------------------------------------------------------ */

/* Encrypts what the mux has, as far as the link takes it. */
static void seal_output(struct libp2p_conn *conn) {
  struct buf *out = &conn->mux.out;
  size_t at = 0;
  while (at < out->len && link_unsent(conn) < LINK_BYTES_MAX) {
    size_t part = out->len - at < SEAL_BYTES ? out->len - at : SEAL_BYTES;
    uint8_t *room = link_reserve(conn, part + CHANNEL_OVERHEAD);
    if (!room) break;
    channel_seal(&conn->channel, room, out->data + at, part);
    link_commit(conn, part + CHANNEL_OVERHEAD);
    at += part;
  }
  if (at) buf_consume(out, at);
  if (!out->len) loop_give_buf(conn->node->loop, out);
}

/* False: there is more to do in the next turn. */
static bool flush_open(struct libp2p_conn *conn) {
  for (;;) {
    mux_pump(&conn->mux);
    if (conn->state != CONN_OPEN || !conn->mux.out.len) return true;
    size_t before = conn->mux.out.len;
    seal_output(conn);
    if (is_udx(conn) && !transmit(conn)) return false;
    if (conn->mux.out.len == before) return true; /* the link is full: it will call */
  }
}

void conn_flush(struct libp2p_conn *conn) {
  bool done = true;
  if (conn->state == CONN_OPEN) done = flush_open(conn);
  if (conn->state != CONN_SECURING && conn->state != CONN_OPEN) return;
  if (is_udx(conn) && done) done = transmit(conn);
  if (!done) node_mark_dirty(conn);
  conn_check_udx(conn);
  if (conn->state != CONN_OVER) conn_schedule(conn);
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

static void close_link(struct libp2p_conn *conn, bool reset) {
  if (!is_udx(conn)) {
    stream_close(&conn->tcp, reset);
    return;
  }
  if (!conn->udx) return;
  udx_close(conn->udx, UDX_ERROR_NONE);
  transmit(conn);
}

static void leave_node(struct libp2p_conn *conn) {
  struct libp2p *node = conn->node;
  timer_cancel(loop_wheel(node->loop), &conn->timer);
  node_end_dialing(conn);
  node_end_accepting(conn);
  node_forget(conn);
  conn_list_remove(&node->all, conn, offsetof(struct libp2p_conn, all));
  node->conn_count--;
  if (!conn->is_dialer) node->accepted_count--;
  conn->next_over = node->over;
  node->over = conn;
  node_ask_hook(node);
}

void conn_end(struct libp2p_conn *conn, enum libp2p_cause cause, uint32_t code, const char *text) {
  enum conn_state before = conn->state;
  struct libp2p_end end = {.cause = cause, .code = code, .text = text};
  if (before == CONN_OVER) return;
  conn->state = CONN_OVER;
  if (before == CONN_OPEN) seal_output(conn); /* a GO_AWAY, perhaps */
  close_link(conn, false);
  mux_abandon(&conn->mux);
  streams_close_all(conn, true);
  leave_node(conn);
  bool was_seen = conn->is_dialer || before == CONN_OPEN;
  if (was_seen && conn->ops && conn->ops->closed) conn->ops->closed(conn, &end);
}

void libp2p_disconnect(struct libp2p_conn *conn) {
  enum conn_state before = conn->state;
  if (before == CONN_OVER) return;
  conn->state = CONN_OVER;
  if (before == CONN_OPEN) {
    mux_go_away(&conn->mux, YAMUX_NORMAL);
    seal_output(conn);
    if (is_udx(conn)) transmit(conn);
  }
  mux_abandon(&conn->mux);
  close_link(conn, false);
  streams_close_all(conn, false);
  leave_node(conn);
}

/* --- input ------------------------------------------------------------------------------------------------------- */

static void end_channel(struct libp2p_conn *conn, enum channel_result result) {
  enum libp2p_cause cause = result == CHANNEL_INSECURE      ? LIBP2P_INSECURE
                            : result == CHANNEL_NO_PROTOCOL ? LIBP2P_NO_PROTOCOL
                            : result == CHANNEL_NO_MEMORY   ? LIBP2P_NO_MEMORY
                                                            : LIBP2P_BROKEN;
  conn_end(conn, cause, 0, conn->channel.failure);
}

static void become_open(struct libp2p_conn *conn) {
  uint64_t now_ns = loop_now_ns(conn->node->loop), wait_ns = conn->node->config.keep_alive_ns;
  node_end_accepting(conn);
  conn->state = CONN_OPEN;
  conn->setup_due_ns = UINT64_MAX;
  if (wait_ns != UINT64_MAX) conn->ping_due_ns = now_ns + wait_ns;
  if (conn->ops && conn->ops->opened) conn->ops->opened(conn);
}

static void take_plain(struct libp2p_conn *conn, struct view plain) {
  if (!plain.len || conn->state != CONN_OPEN) return;
  bool good = mux_received(&conn->mux, (uint8_t *)(uintptr_t)plain.data, plain.len);
  if (conn->state != CONN_OPEN) return;
  node_mark_dirty(conn);
  if (!good) {
    conn_end(conn, LIBP2P_BROKEN, 0, conn->mux.failure);
  } else if (conn->mux.peer_leaves && conn->mux.peer_leaves_code != YAMUX_NORMAL) {
    conn_end(conn, LIBP2P_RESET, conn->mux.peer_leaves_code, "the peer ended the yamux session with an error");
  }
}

/* What came over the link; returns what was used. */
static size_t link_received(struct libp2p_conn *conn, uint8_t *data, size_t len) {
  struct buf *answer = &conn->node->scratch;
  size_t total = 0;
  while (conn->state != CONN_OVER) {
    size_t used;
    struct view plain;
    answer->len = 0;
    enum channel_result result = channel_received(&conn->channel, data + total, len - total, &used, &plain, answer);
    total += used;
    bool written = link_write(conn, answer);
    if (result > CHANNEL_PLAIN) {
      end_channel(conn, result);
    } else if (!written) {
      conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
    } else if (result == CHANNEL_MORE) {
      break;
    } else {
      if (result == CHANNEL_ESTABLISHED) become_open(conn);
      take_plain(conn, plain);
    }
  }
  return conn->state == CONN_OVER ? 0 : total;
}

void conn_secure(struct libp2p_conn *conn) {
  struct buf *first = &conn->node->scratch;
  first->len = 0;
  const struct peer_id *expected = conn->has_expected ? &conn->channel.peer : NULL;
  struct peer_id peer;
  if (expected) peer = *expected;
  conn->state = CONN_SECURING;
  bool good = channel_begin(&conn->channel, conn->is_dialer, conn->identity, expected ? &peer : NULL, first) &&
              link_write(conn, first);
  if (!good) conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
}

/* --- TCP --------------------------------------------------------------------------------------------------------- */

static struct libp2p_conn *conn_of_tcp(struct stream *stream) {
  return (struct libp2p_conn *)((char *)stream - offsetof(struct libp2p_conn, tcp));
}

static void tcp_opened(struct stream *stream) {
  struct libp2p_conn *conn = conn_of_tcp(stream);
  conn_secure(conn);
  if (conn->state != CONN_OVER) conn_schedule(conn);
}

static size_t tcp_received(struct stream *stream, uint8_t *data, size_t len) {
  return link_received(conn_of_tcp(stream), data, len);
}

static void tcp_drained(struct stream *stream) {
  node_mark_dirty(conn_of_tcp(stream));
}

static void tcp_closed(struct stream *stream, enum stream_end how, int error) {
  struct libp2p_conn *conn = conn_of_tcp(stream);
  bool is_open = conn->state == CONN_OPEN;
  switch (how) {
  case STREAM_END_CLOSED:
    conn_end(conn, is_open ? LIBP2P_CLOSED : LIBP2P_RESET, 0, "the peer closed the connection");
    break;
  case STREAM_END_REFUSED:
    conn_end(conn, LIBP2P_REFUSED, (uint32_t)error, "nobody listens there");
    break;
  case STREAM_END_CONNECT:
    conn_end(conn, LIBP2P_UNREACHABLE, (uint32_t)error, strerror(error));
    break;
  case STREAM_END_MEMORY:
    conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
    break;
  default:
    conn_end(conn, LIBP2P_RESET, (uint32_t)error, error ? strerror(error) : "the connection broke");
  }
}

const struct stream_ops conn_tcp_ops = {
    .opened = tcp_opened, .received = tcp_received, .drained = tcp_drained, .closed = tcp_closed};

/* --- UDX --------------------------------------------------------------------------------------------------------- */

static struct libp2p_conn *conn_of_udx(struct udx_stream *stream) {
  return udx_user(udx_of(stream));
}

static size_t udx_bytes_received(struct udx_stream *stream, uint8_t *data, size_t len) {
  struct libp2p_conn *conn = conn_of_udx(stream);
  /* Not the ACK of the SYN: a go-udx peer acknowledges what still waits to be accepted. */
  if (conn->is_dialing) node_end_dialing(conn);
  return link_received(conn, data, len);
}

static void udx_stream_ended(struct udx_stream *stream) {
  struct libp2p_conn *conn = conn_of_udx(stream);
  conn_end(conn, conn->state == CONN_OPEN ? LIBP2P_CLOSED : LIBP2P_RESET, 0, "the peer ended its UDX stream");
}

static void udx_stream_reset(struct udx_stream *stream, uint32_t code) {
  conn_end(conn_of_udx(stream), LIBP2P_RESET, code, "the peer reset its UDX stream");
}

static void udx_stream_accepted(struct udx_stream *stream) {
  struct libp2p_conn *conn = conn_of_udx(stream);
  conn->udx_stream = stream;
  conn_secure(conn);
}

const struct udx_ops conn_udx_ops = {.received = udx_bytes_received,
    .ended = udx_stream_ended,
    .reset = udx_stream_reset,
    .accepted = udx_stream_accepted};

void conn_check_udx(struct libp2p_conn *conn) {
  uint32_t code;
  if (!conn->udx || conn->state == CONN_OVER) return;
  switch (udx_ended(conn->udx, &code)) {
  case UDX_PEER_CLOSED:
    conn_end(conn, code || conn->state != CONN_OPEN ? LIBP2P_RESET : LIBP2P_CLOSED, code,
        "the peer closed the UDX connection");
    break;
  case UDX_IDLE_TIMEOUT:
    conn_end(conn, LIBP2P_TIMED_OUT, 0, "nothing came from the peer for 30 seconds");
    break;
  case UDX_VIOLATION:
    conn_end(conn, LIBP2P_BROKEN, code, "the peer broke the rules of UDX");
    break;
  case UDX_NO_MEMORY:
    conn_end(conn, LIBP2P_NO_MEMORY, 0, "out of memory");
    break;
  default:
    break;
  }
}

/* --- time -------------------------------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t ping_next_ns(const struct libp2p_conn *conn) {
  uint64_t sent_ns = conn->mux.ping_sent_ns;
  return sent_ns ? earlier(conn->ping_due_ns, sent_ns + NODE_PING_ANSWER_NS) : conn->ping_due_ns;
}

void conn_schedule(struct libp2p_conn *conn) {
  uint64_t due_ns = earlier(conn->setup_due_ns, ping_next_ns(conn));
  if (conn->udx) due_ns = earlier(due_ns, udx_next_ns(conn->udx));
  if (due_ns == UINT64_MAX) return;
  /* A timer that fires too early looks again: cheaper than arming it for every packet. */
  if (timer_armed(&conn->timer) && conn->timer_due_ns <= due_ns) return;
  conn->timer_due_ns = due_ns;
  timer_arm(loop_wheel(conn->node->loop), &conn->timer, due_ns);
}

/* False: the connection is over. */
static bool keep_alive(struct libp2p_conn *conn, uint64_t now_ns) {
  uint64_t sent_ns = conn->mux.ping_sent_ns;
  if (sent_ns && now_ns >= sent_ns + NODE_PING_ANSWER_NS) {
    conn_end(conn, LIBP2P_TIMED_OUT, 0, "the peer does not answer pings");
    return false;
  }
  if (now_ns < conn->ping_due_ns) return true;
  conn->ping_due_ns = now_ns + conn->node->config.keep_alive_ns;
  mux_ping(&conn->mux, now_ns);
  return true;
}

static void timer_fired(struct timer *timer, uint64_t now_ns) {
  struct libp2p_conn *conn = (struct libp2p_conn *)((char *)timer - offsetof(struct libp2p_conn, timer));
  if (now_ns >= conn->setup_due_ns) {
    conn_end(conn, LIBP2P_TIMED_OUT, 0, "the peer does not answer, or too slowly");
    return;
  }
  if (conn->state == CONN_OPEN && !keep_alive(conn, now_ns)) return;
  if (conn->udx) udx_tick(conn->udx, now_ns);
  conn_check_udx(conn);
  if (conn->state == CONN_OVER) return;
  node_mark_dirty(conn);
  conn_schedule(conn);
}

/* --- what peer.h asks of a connection ------------------------------------------------------------------------------
 */

void *libp2p_conn_user(const struct libp2p_conn *conn) {
  return conn->user;
}

void libp2p_conn_set_user(struct libp2p_conn *conn, void *user) {
  conn->user = user;
}

const struct peer_id *libp2p_conn_peer(const struct libp2p_conn *conn) {
  return &conn->channel.peer;
}
