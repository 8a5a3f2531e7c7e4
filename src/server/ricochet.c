#include "server/ricochet.h"

#include "base/clock.h"
#include "base/rng.h"
#include "net/libp2p/peer.h"
#include "server/metrics.h"
#include "server/table.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TURN_NS (100 * NS_PER_MS)
#define STREAMS_MAX 1024              /* of one connection: an answered one counts until its end has left */
#define STALL_NS (30 * NS_PER_SEC)    /* a request or response that does not move */
#define REQUEST_NS (120 * NS_PER_SEC) /* a request that moves, but does not come to its end */
#define SWEEP_NS NS_PER_SEC
#define NOTIFICATIONS_MAX 4                   /* under way at once; more are dropped */
#define NOTIFICATION_NS (5 * NS_PER_SEC)      /* until one is given up */
#define LONG_FRAMES_MAX (UINT64_C(256) << 20) /* bytes that frames under way may ask for beyond a window */
#define LONG_FRAME_BYTES (256u * 1024)

/* One stream: a request on its way in, then its response on its way out. */
struct call {
  struct call *next, *previous; /* of the house's, oldest first */
  struct ricochet_house *house;
  struct libp2p_stream *stream;
  struct buf response; /* held back until the commit */
  uint64_t began_ns, moved_ns;
  uint32_t expected; /* of a long frame */
  uint32_t waiting;  /* bytes of the response, until the stream is over */
  bool answered;
  enum ricochet_protocol protocol;
};

struct guest {
  struct table_entry entry; /* by peer id text: the newest connection of each peer */
  struct ricochet_peer peer;
  struct libp2p_conn *conn;
  struct ricochet_house *house;
};

struct notice {
  char owner[64], folder[260];
};

/* A notification under way. */
struct notifying {
  struct libp2p_stream *stream; /* NULL: free */
  uint64_t since_ns;
};

struct ricochet_house {
  struct libp2p_identity identity;
  struct loop *loop;
  struct libp2p *node;
  struct ricochet_service service;
  struct table guests;
  struct call *first, *last; /* calls */
  struct notice notices[NOTIFICATIONS_MAX];
  struct notifying notifyings[NOTIFICATIONS_MAX];
  uint32_t noticed, notifying;
  uint32_t unwritten; /* responses that are held back */
  uint64_t expected_bytes;
  atomic_uint_fast64_t connections, streams; /* now */
  struct timer sweep;
  pthread_t thread;
  bool started;
  atomic_bool stopping, failed;
  pthread_mutex_t lock; /* of err */
  struct err err;
};

/* --- calls --- */

static void link_call(struct ricochet_house *house, struct call *call) {
  call->house = house;
  call->previous = house->last;
  *(house->last ? &house->last->next : &house->first) = call;
  house->last = call;
  stat_add(&house->streams, 1);
}

static void free_call(struct call *call) {
  struct ricochet_house *house = call->house;
  *(call->previous ? &call->previous->next : &house->first) = call->next;
  *(call->next ? &call->next->previous : &house->last) = call->previous;
  house->expected_bytes -= call->expected;
  house->service.waiting_bytes -= call->waiting;
  if (call->answered && call->response.len > 0) house->unwritten--;
  buf_free(&call->response);
  free(call);
  stat_sub(&house->streams, 1);
}

static void end_call(struct call *call) {
  libp2p_stream_reset(call->stream);
  free_call(call);
}

static void accept_call(struct libp2p_stream *stream, void *user, enum ricochet_protocol protocol) {
  struct call *call = calloc(1, sizeof *call);
  if (!call) {
    libp2p_stream_reset(stream);
    return;
  }
  call->stream = stream;
  call->protocol = protocol;
  call->began_ns = call->moved_ns = clock_now_ns();
  link_call(user, call);
  libp2p_stream_set_user(stream, call);
}

/* A frame that is longer than a window is let in when the house has room for it. */
static bool expect(struct call *call, const uint8_t *data) {
  struct ricochet_house *house = call->house;
  uint32_t whole = ((uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3]) + 4;
  if (whole <= LONG_FRAME_BYTES || call->expected > 0) return true;
  if (house->expected_bytes + whole > LONG_FRAMES_MAX) return false;
  call->expected = whole;
  house->expected_bytes += whole;
  return libp2p_stream_expect(call->stream, whole);
}

static void answer(struct call *call, struct view body) {
  struct ricochet_house *house = call->house;
  struct guest *guest = libp2p_conn_user(libp2p_stream_conn(call->stream));
  house->service.in_flight = house->unwritten;
  ricochet_serve(&house->service, call->protocol, &guest->peer, body, clock_wall_ms(), &call->response);
  call->answered = true;
  call->waiting = call->response.len;
  house->service.waiting_bytes += call->waiting;
  if (call->response.len > 0) house->unwritten++;
}

static size_t on_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct call *call = libp2p_stream_user(stream);
  struct view body;
  size_t used = 0;
  if (!call || call->answered) return len;
  enum ricochet_frame frame = ricochet_read_frame(view_of(data, len), &body, &used);
  call->moved_ns = clock_now_ns();
  if (frame == RICOCHET_FRAME_PARTIAL && (len < RICOCHET_HEAD_BYTES || expect(call, data))) return 0;
  if (frame != RICOCHET_FRAME_OK) {
    end_call(call);
    return 0;
  }
  answer(call, body);
  if (call->response.len > 0) return used;
  end_call(call); /* no response fits into a frame, or into memory */
  return 0;
}

static void on_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  struct call *call = libp2p_stream_user(stream);
  (void)end;
  if (call) free_call(call);
}

/* The peer ended its half before its request was whole. */
static void on_ended(struct libp2p_stream *stream) {
  struct call *call = libp2p_stream_user(stream);
  if (call && !call->answered) end_call(call);
}

static const struct libp2p_stream_ops call_ops = {.received = on_received, .ended = on_ended, .closed = on_closed};

#define ACCEPTED(name, protocol)                                                                                       \
  static void accepted_##name(struct libp2p_stream *stream, void *user) {                                              \
    accept_call(stream, user, protocol);                                                                               \
  }
ACCEPTED(submit, RICOCHET_SUBMIT)
ACCEPTED(batch, RICOCHET_SUBMIT_BATCH)
ACCEPTED(access, RICOCHET_ACCESS)
ACCEPTED(admin, RICOCHET_ADMIN)
ACCEPTED(document, RICOCHET_DOCUMENT)
ACCEPTED(feed, RICOCHET_FEED)
ACCEPTED(collection, RICOCHET_COLLECTION)

static const struct libp2p_protocol protocols[] = {
    {"/sf-network/submit/1.0.0", &call_ops, accepted_submit},
    {"/sf-network/submit/batch/1.0.0", &call_ops, accepted_batch},
    {"/sf-network/access/1.0.0", &call_ops, accepted_access},
    {"/sf-network/admin/1.0.0", &call_ops, accepted_admin},
    {"/ricochet/store/doc/1.0.0", &call_ops, accepted_document},
    {"/ricochet/store/feed/1.0.0", &call_ops, accepted_feed},
    {"/ricochet/store/collection/1.0.0", &call_ops, accepted_collection},
};

/* --- guests --- */

static void on_guest(struct libp2p_conn *conn) {
  struct ricochet_house *house = libp2p_conn_user(conn);
  struct guest *guest = calloc(1, sizeof *guest);
  if (!guest) {
    libp2p_disconnect(conn);
    return;
  }
  peer_id_text(libp2p_conn_peer(conn), guest->peer.id);
  guest->conn = conn;
  guest->house = house;
  guest->entry.key = view_str(guest->peer.id);
  libp2p_conn_set_user(conn, guest);
  table_insert(&house->guests, &guest->entry);
  stat_add(&house->connections, 1);
}

static void on_guest_gone(struct libp2p_conn *conn, const struct libp2p_end *end) {
  struct guest *guest = libp2p_conn_user(conn);
  struct ricochet_house *house = guest->house;
  (void)end;
  if (table_find(&house->guests, guest->entry.key) == guest) table_remove(&house->guests, guest->entry.key);
  free(guest);
  stat_sub(&house->connections, 1);
}

static const struct libp2p_conn_ops guest_ops = {.opened = on_guest, .closed = on_guest_gone};

/* --- notifications --- */

static void note_arrival(void *context, struct view owner, struct view folder) {
  struct ricochet_house *house = context;
  if (house->noticed + house->notifying >= NOTIFICATIONS_MAX || !table_find(&house->guests, owner)) return;
  struct notice *notice = &house->notices[house->noticed++];
  snprintf(notice->owner, sizeof notice->owner, "%.*s", (int)owner.len, (const char *)owner.data);
  snprintf(notice->folder, sizeof notice->folder, "%.*s", (int)folder.len, (const char *)folder.data);
}

static size_t on_notify_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  (void)stream, (void)data;
  return len;
}

static void note_sent(struct ricochet_house *house, struct libp2p_stream *stream, uint64_t now_ns) {
  struct notifying *place = house->notifyings;
  while (place->stream)
    place++;
  *place = (struct notifying){stream, now_ns};
  house->notifying++;
}

static void on_notify_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  struct ricochet_house *house = libp2p_stream_user(stream);
  (void)end;
  for (size_t i = 0; i < NOTIFICATIONS_MAX; i++) {
    if (house->notifyings[i].stream == stream) house->notifyings[i].stream = NULL;
  }
  house->notifying--;
}

/* A peer that does not end its half would keep all others from being told. */
static void give_up_notifications(struct ricochet_house *house, uint64_t now_ns) {
  for (size_t i = 0; i < NOTIFICATIONS_MAX; i++) {
    struct notifying *place = &house->notifyings[i];
    if (!place->stream || now_ns < place->since_ns + NOTIFICATION_NS) continue;
    libp2p_stream_reset(place->stream);
    place->stream = NULL;
    house->notifying--;
  }
}

static const struct libp2p_stream_ops notify_ops = {.received = on_notify_received, .closed = on_notify_closed};

static void write_notice(struct ricochet_house *house, const struct notice *notice, struct buf *out) {
  char path[336];
  int len = snprintf(path, sizeof path, "%s/%s", notice->owner, notice->folder);
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "mailboxPath", view_of(path, (size_t)len));
  ricochet_put_text(&w, "mailboxType", view_str("private"));
  ricochet_put_int(&w, "messageCount", 1);
  ricochet_put_int(&w, "timestamp", clock_wall_ms() / 1000);
  ricochet_put_text(&w, "serverPeerId", view_str(house->identity.text));
  ricochet_close(&w, '}');
  ricochet_end(&w);
}

static void notify(struct ricochet_house *house, const struct notice *notice) {
  struct guest *guest = table_find(&house->guests, view_str(notice->owner));
  struct buf out = {0};
  if (!guest) return;
  struct libp2p_stream *stream =
      libp2p_open_stream(guest->conn, ricochet_protocol_id(RICOCHET_NOTIFY), &notify_ops, house);
  if (!stream) return;
  note_sent(house, stream, clock_now_ns());
  write_notice(house, notice, &out);
  libp2p_stream_write(stream, out.data, out.len);
  libp2p_stream_end(stream);
  buf_free(&out);
}

/* --- the thread --- */

static void fail(struct ricochet_house *house) {
  pthread_mutex_lock(&house->lock);
  ricochet_store_failed(house->service.store, &house->err);
  pthread_mutex_unlock(&house->lock);
  atomic_store(&house->failed, true);
}

static void write_response(struct call *call) {
  bool written = call->response.len > 0 && libp2p_stream_write(call->stream, call->response.data, call->response.len);
  if (call->response.len > 0) call->house->unwritten--;
  buf_free(&call->response);
  call->moved_ns = clock_now_ns();
  if (written) {
    libp2p_stream_end(call->stream);
  } else {
    end_call(call);
  }
}

/* What was answered since the last turn becomes durable, and only then leaves. True when something left. */
static bool commit_and_reply(struct ricochet_house *house) {
  struct call *next;
  if (ricochet_store_commit(house->service.store) != STATUS_OK) {
    fail(house);
    return false;
  }
  bool any = house->unwritten > 0 || house->noticed > 0;
  for (struct call *call = house->first; call && house->unwritten > 0; call = next) {
    next = call->next;
    if (call->answered && call->response.len > 0) write_response(call);
  }
  while (house->noticed > 0)
    notify(house, &house->notices[--house->noticed]);
  return any;
}

static void sweep(struct timer *timer, uint64_t now_ns) {
  struct ricochet_house *house = (struct ricochet_house *)((char *)timer - offsetof(struct ricochet_house, sweep));
  struct call *next;
  for (struct call *call = house->first; call; call = next) {
    next = call->next;
    bool waits = call->answered && call->response.len > 0;
    bool drips = !call->answered && now_ns > call->began_ns + REQUEST_NS;
    if (drips || (!waits && now_ns > call->moved_ns + STALL_NS)) end_call(call);
  }
  give_up_notifications(house, now_ns);
  timer_arm(loop_wheel(house->loop), timer, now_ns + SWEEP_NS);
}

static void *run(void *context) {
  struct ricochet_house *house = context;
  bool any = false;
  pthread_setname_np(pthread_self(), "ricochet");
  house->sweep.fire = sweep;
  timer_arm(loop_wheel(house->loop), &house->sweep, clock_now_ns() + SWEEP_NS);
  while (!atomic_load(&house->stopping) && !atomic_load(&house->failed)) {
    loop_turn(house->loop, any ? 0 : clock_now_ns() + TURN_NS);
    any = commit_and_reply(house);
  }
  house->service.draining = true;
  if (!atomic_load(&house->failed)) commit_and_reply(house);
  loop_turn(house->loop, 0);
  timer_cancel(loop_wheel(house->loop), &house->sweep);
  return NULL;
}

/* --- life --- */

static enum status write_seed(int fd, const char *path, const uint8_t *seed, struct err *err) {
  char text[2 * IDENTITY_SEED_BYTES + 2];
  for (size_t i = 0; i < IDENTITY_SEED_BYTES; i++)
    snprintf(text + 2 * i, 3, "%02x", seed[i]);
  text[sizeof text - 2] = '\n';
  bool ok = write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1 && fsync(fd) == 0;
  return ok ? STATUS_OK : err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
}

static enum status read_seed(int fd, const char *path, uint8_t *seed, struct err *err) {
  char text[2 * IDENTITY_SEED_BYTES + 1] = "";
  ssize_t len = read(fd, text, sizeof text - 1);
  for (size_t i = 0; i < IDENTITY_SEED_BYTES && len == sizeof text - 1; i++) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) len = -1; /* NOLINT(cert-err34-c): two digits at most */
    seed[i] = (uint8_t)byte;
  }
  if (len == sizeof text - 1) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%s: is no identity of 64 hexadecimal digits: remove it to get a new one", path);
}

/* From the file, or a fresh one into it. */
static enum status take_identity(struct ricochet_house *house, const char *data_dir, struct err *err) {
  char path[512];
  uint8_t seed[IDENTITY_SEED_BYTES];
  struct stat info;
  snprintf(path, sizeof path, "%s/ricochet.key", data_dir);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool fresh = fd < 0 && errno == ENOENT;
  if (fresh) fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
  enum status status = STATUS_OK;
  if (!fresh && fstat(fd, &info) == 0 && info.st_mode & (S_IRWXG | S_IRWXO)) {
    status = err_set(err, STATUS_USAGE, "%s: others may read it: chmod 600", path);
  }
  if (fresh) random_bytes(seed, sizeof seed);
  if (status == STATUS_OK) status = fresh ? write_seed(fd, path, seed, err) : read_seed(fd, path, seed, err);
  close(fd);
  return status == STATUS_OK ? libp2p_identity_make(&house->identity, seed, err) : status;
}

static uint16_t port_of(const struct address *address) {
  if (address->storage.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
  return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
}

static enum status listen_on(struct ricochet_house *house, const struct server_config *config,
    enum multiaddr_transport transport, struct ricochet_place *out, struct err *err) {
  struct address address;
  struct multiaddr multiaddr = {.transport = transport, .has_peer = true, .peer = house->identity.peer};
  enum status status = address_resolve(config->ricochet_host, out->port, &address, err);
  if (status == STATUS_OK) status = libp2p_listen(house->node, transport, &address, false, err);
  if (status != STATUS_OK) return err_prefix(err, "--ricochet");
  out->port = multiaddr.port = port_of(&address);
  snprintf(multiaddr.host, sizeof multiaddr.host, "%s", config->ricochet_host);
  multiaddr_text(&multiaddr, out->multiaddr);
  return STATUS_OK;
}

static enum status open_house(struct ricochet_house *house, struct server_config *config, struct err *err) {
  enum status status = ricochet_store_open(&house->service.store, config->data_dir, config->ack == ACK_DURABLE, err);
  if (status == STATUS_OK) status = take_identity(house, config->data_dir, err);
  if (status == STATUS_OK) status = loop_create(&house->loop, err);
  if (status != STATUS_OK) return status;
  struct libp2p_config node = {
      .identity = &house->identity,
      .protocols = protocols,
      .protocol_count = sizeof protocols / sizeof *protocols,
      .incoming = &guest_ops,
      .user = house,
      .identify = true,
      .connections_max = config->max_connections,
      .streams_max = STREAMS_MAX,
  };
  status = libp2p_create(&house->node, house->loop, &node, err);
  if (status == STATUS_OK) status = listen_on(house, config, MULTIADDR_UDX, &config->ricochet_udx, err);
  if (status != STATUS_OK) return status;
  snprintf(config->ricochet_peer, sizeof config->ricochet_peer, "%s", house->identity.text);
  return listen_on(house, config, MULTIADDR_TCP, &config->ricochet_tcp, err);
}

static void free_house(struct ricochet_house *house) {
  if (house->node) libp2p_close(house->node);
  if (house->loop) loop_destroy(house->loop);
  for (struct call *call = house->first, *next; call; call = next) {
    next = call->next;
    buf_free(&call->response);
    free(call);
  }
  ricochet_store_close(house->service.store);
  table_free(&house->guests);
  pthread_mutex_destroy(&house->lock);
  free(house);
}

enum status ricochet_house_start(struct ricochet_house **out, struct server_config *config, struct err *err) {
  struct ricochet_house *house = calloc(1, sizeof *house);
  if (!house) return err_set(err, STATUS_MEMORY, "out of memory for the Ricochet peer");
  pthread_mutex_init(&house->lock, NULL);
  table_open(&house->guests);
  ricochet_limits_defaults(&house->service.limits);
  if (config->ricochet_messages > 0) house->service.limits.max_messages = config->ricochet_messages;
  house->service.limits.rate_per_sec = config->ricochet_rate;
  house->service.arrived = note_arrival;
  house->service.context = house;
  enum status status = open_house(house, config, err);
  if (status == STATUS_OK && pthread_create(&house->thread, NULL, run, house) != 0) {
    status = err_set(err, STATUS_IO, "cannot start the thread of the Ricochet peer");
  }
  if (status != STATUS_OK) {
    free_house(house);
    return status;
  }
  house->started = true;
  *out = house;
  return STATUS_OK;
}

void ricochet_house_stop(struct ricochet_house *house) {
  if (!house) return;
  atomic_store(&house->stopping, true);
  if (house->started) pthread_join(house->thread, NULL);
  free_house(house);
}

bool ricochet_house_failed(struct ricochet_house *house, struct err *err) {
  if (!house || !atomic_load(&house->failed)) return false;
  pthread_mutex_lock(&house->lock);
  *err = house->err;
  pthread_mutex_unlock(&house->lock);
  return true;
}

void ricochet_house_read(const struct ricochet_house *house, struct ricochet_totals *out) {
  out->connections = atomic_load_explicit(&house->connections, memory_order_relaxed);
  out->streams = atomic_load_explicit(&house->streams, memory_order_relaxed);
  for (size_t i = 0; i < RICOCHET_NOTIFY; i++) {
    for (size_t k = 0; k < RICOCHET_OUTCOMES; k++)
      out->answered[i][k] = atomic_load_explicit(&house->service.answered[i][k], memory_order_relaxed);
  }
}
