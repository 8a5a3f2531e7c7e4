#include "net/stream.h"

#include "net/loop_private.h"
#include "net/tls_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

_Static_assert(sizeof(struct stream) <= 120, "a million streams must fit");

enum stream_state { STATE_CLOSED, STATE_CONNECTING, STATE_HANDSHAKE, STATE_OPEN, STATE_FAILED };

enum stream_flag {
  FLAG_BLOCKED = 1,    /* the socket refused output; EPOLLOUT will tell */
  FLAG_PAUSED = 2,     /* by stream_pause */
  FLAG_RESUMED = 4,    /* the tail is to be given again at the end of the turn */
  FLAG_REFUSED = 8,    /* the failure was one of connecting */
  FLAG_RECEIVING = 16, /* inside received */
  FLAG_TLS_ERROR = 32,
  FLAG_UNREAD = 64, /* the socket may hold input of which epoll has told already */
};

/* Edge-triggered: one registration for the whole life, no epoll_ctl when output blocks. */
#define EDGES ((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP) | (uint32_t)EPOLLET)
#define FLUSH_BYTES (64U * 1024)
/* A longer tail is not copied to the read buffer, reading goes on behind it. */
#define TAIL_COPY_MAX (16U * 1024)
#define ACCEPTS_PER_TURN 64
#define ACCEPT_RETRY_NS (50 * UINT64_C(1000000))
#define HANGUP_EVENTS ((uint32_t)(EPOLLRDHUP | EPOLLHUP | EPOLLERR))

static void stream_ready(struct watch *watch, uint32_t events);

static struct stream *stream_of(struct watch *watch) {
  return (struct stream *)((char *)watch - offsetof(struct stream, watch));
}

static void guard_enter(struct loop *loop, struct guard *guard, const void *object) {
  struct guard **top = loop_guards(loop);
  *guard = (struct guard){.object = object, .outer = *top};
  *top = guard;
}

/* True when the object is still the one that was entered. */
static bool guard_leave(struct loop *loop, struct guard *guard) {
  *loop_guards(loop) = guard->outer;
  return guard->object;
}

static void guards_clear(struct loop *loop, const void *object) {
  for (struct guard *guard = *loop_guards(loop); guard; guard = guard->outer) {
    if (guard->object == object) guard->object = NULL;
  }
}

/* Calls one of the owner's functions. False when the stream is gone afterwards. */
static bool call(struct stream *stream, void (*function)(struct stream *stream)) {
  struct loop *loop = stream->loop;
  struct guard guard;
  guard_enter(loop, &guard, stream);
  function(stream);
  return guard_leave(loop, &guard);
}

static void enter_list(struct stream *stream, struct stream **head) {
  if (stream->dirty_link) return;
  stream->next_dirty = *head;
  stream->dirty_link = head;
  if (*head) (*head)->dirty_link = &stream->next_dirty;
  *head = stream;
}

void stream_leave_list(struct stream *stream) {
  if (!stream->dirty_link) return;
  *stream->dirty_link = stream->next_dirty;
  if (stream->next_dirty) stream->next_dirty->dirty_link = stream->dirty_link;
  stream->dirty_link = NULL;
  stream->next_dirty = NULL;
}

void stream_move_list(struct stream **from, struct stream **to) {
  *to = *from;
  *from = NULL;
  if (*to) (*to)->dirty_link = to;
}

/* For failures outside the stream's own events: closed must not be called from within, say, stream_write. */
static void fail_later(struct stream *stream, int error) {
  stream->state = STATE_FAILED;
  stream->error = (uint16_t)error;
  stream_leave_list(stream);
  enter_list(stream, loop_failed(stream->loop));
}

static size_t unsent(const struct stream *stream) {
  return stream->out.len - stream->out_sent;
}

/* Gives everything back; afterwards nobody points at the stream. */
static void dismantle(struct stream *stream, bool reset, bool notify) {
  struct loop *loop = stream->loop;
  int fd = stream->watch.fd;
  guards_clear(loop, stream);
  stream_leave_list(stream);
  loop_unwatch(loop, &stream->watch);
  if (stream->tls) tls_session_free(stream->tls, notify);
  stream->tls = NULL;
  if (reset) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  }
  if (fd >= 0) close(fd);
  buf_free(&stream->in);
  loop_give_buf(loop, &stream->out);
  stream->out_sent = 0;
  stream->state = STATE_CLOSED;
  stream->flags = 0;
}

static void end(struct stream *stream, enum stream_end how, int error) {
  const struct stream_ops *ops = stream->ops;
  if (how == STREAM_END_CLOSED && stream->state == STATE_OPEN) stream_flush(stream);
  dismantle(stream, false, how == STREAM_END_CLOSED);
  ops->closed(stream, how, error);
}

static void end_connect(struct stream *stream, int error) {
  end(stream, error == ECONNREFUSED ? STREAM_END_REFUSED : STREAM_END_CONNECT, error);
}

/* Sends from the front of the output; false with *error set when the socket failed. */
static bool send_some(struct stream *stream, const uint8_t *data, size_t len, size_t *sent, int *error) {
  *error = 0;
  if (stream->tls) {
    enum tls_result result = tls_write(stream->tls, data, len, sent, error);
    if (result == TLS_FAILED) stream->flags |= FLAG_TLS_ERROR;
    return result != TLS_FAILED && result != TLS_BROKEN;
  }
  ssize_t n;
  do {
    n = send(stream->watch.fd, data, len, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  *sent = n > 0 ? (size_t)n : 0;
  if (n >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) return true;
  *error = errno;
  return false;
}

void stream_flush(struct stream *stream) {
  if (stream->state != STATE_OPEN) return;
  while (unsent(stream)) {
    size_t sent = 0;
    int error;
    if (!send_some(stream, stream->out.data + stream->out_sent, unsent(stream), &sent, &error)) {
      fail_later(stream, error);
      return;
    }
    if (sent == 0) {
      stream->flags |= FLAG_BLOCKED;
      return;
    }
    stream->out_sent += (uint32_t)sent;
  }
  stream->out_sent = 0;
  loop_give_buf(stream->loop, &stream->out);
}

/* After the socket took output again. False when the stream is gone. */
static bool unblock(struct stream *stream) {
  if (!(stream->flags & FLAG_BLOCKED)) return true;
  stream->flags &= (uint8_t)~FLAG_BLOCKED;
  stream_flush(stream);
  if (stream->state != STATE_OPEN || unsent(stream) || !stream->ops->drained) return true;
  return call(stream, stream->ops->drained);
}

uint8_t *stream_reserve(struct stream *stream, size_t len) {
  if (stream->state != STATE_OPEN) return NULL;
  if (!stream->out.cap) stream->out = loop_take_buf(stream->loop);
  /* What is written already makes room before the buffer grows, when that moves less than it frees. */
  if (stream->out_sent > unsent(stream) && stream->out.len + len > stream->out.cap) {
    buf_consume(&stream->out, stream->out_sent);
    stream->out_sent = 0;
  }
  return buf_reserve(&stream->out, len);
}

void stream_commit(struct stream *stream, size_t len) {
  stream->out.len += (uint32_t)len;
  if (stream->flags & FLAG_BLOCKED) return;
  if (unsent(stream) >= FLUSH_BYTES) {
    stream_flush(stream);
    if (!unsent(stream)) return;
  }
  enter_list(stream, loop_dirty(stream->loop));
}

bool stream_write(struct stream *stream, const void *data, size_t len) {
  if (len == 0) return stream->state == STATE_OPEN;
  uint8_t *room = stream_reserve(stream, len);
  if (!room) return false;
  memcpy(room, data, len);
  stream_commit(stream, len);
  return true;
}

size_t stream_pending(const struct stream *stream) {
  return unsent(stream);
}

bool stream_blocked(const struct stream *stream) {
  return stream->flags & FLAG_BLOCKED;
}

bool stream_is_open(const struct stream *stream) {
  return stream->state == STATE_OPEN;
}

/* Where input goes next: behind a long tail, or into the loop's buffer behind a copy of a short one. */
struct space {
  uint8_t *start; /* of the tail */
  size_t kept;    /* bytes of the tail */
  size_t room;    /* behind it */
};

static bool input_space(struct stream *stream, uint8_t *scratch, struct space *space) {
  struct buf *in = &stream->in;
  if (!scratch) return false;
  if (in->len > TAIL_COPY_MAX) {
    if (!buf_reserve(in, LOOP_READ_BYTES)) return false;
    *space = (struct space){.start = in->data, .kept = in->len, .room = in->cap - in->len};
    return true;
  }
  if (in->len) memcpy(scratch, in->data, in->len);
  *space = (struct space){.start = scratch, .kept = in->len, .room = LOOP_READ_BYTES - in->len};
  return true;
}

/* Keeps data+used..data+len as the tail. */
static bool keep_tail(struct stream *stream, uint8_t *data, size_t len, size_t used) {
  struct buf *in = &stream->in;
  if (used >= len) {
    buf_free(in);
    return true;
  }
  if (data == in->data) {
    in->len = (uint32_t)len;
    if (used) buf_consume(in, used);
    return true;
  }
  in->len = 0;
  return buf_append(in, data + used, len - used);
}

/* Gives bytes to the owner. False when the stream is gone. */
static bool deliver(struct stream *stream, uint8_t *data, size_t len) {
  struct loop *loop = stream->loop;
  struct guard guard;
  guard_enter(loop, &guard, stream);
  stream->flags |= FLAG_RECEIVING;
  size_t used = stream->ops->received(stream, data, len);
  if (!guard_leave(loop, &guard)) return false;
  stream->flags &= (uint8_t)~FLAG_RECEIVING;
  if (keep_tail(stream, data, len, used)) return true;
  end(stream, STREAM_END_MEMORY, ENOMEM);
  return false;
}

/* Makes epoll look again: an edge-triggered set tells only once. */
static void rearm(struct stream *stream) {
  struct err err;
  if (loop_rewatch(stream->loop, &stream->watch, EDGES, &err) != STATUS_OK) fail_later(stream, errno);
}

static bool reads(const struct stream *stream) {
  return stream->state == STATE_OPEN && !(stream->flags & FLAG_PAUSED);
}

static ssize_t receive(int fd, uint8_t *data, size_t room) {
  ssize_t n;
  do {
    n = recv(fd, data, room, 0);
  } while (n < 0 && errno == EINTR);
  return n;
}

/* What an empty or failed receive means. */
static void end_of_input(struct stream *stream, ssize_t n) {
  if (n == 0) {
    end(stream, stream->state == STATE_HANDSHAKE ? STREAM_END_TLS : STREAM_END_CLOSED, 0);
    return;
  }
  if (errno != EAGAIN && errno != EWOULDBLOCK) end(stream, STREAM_END_RESET, errno);
}

static void read_plain(struct stream *stream, uint32_t events) {
  stream->flags &= (uint8_t)~FLAG_UNREAD;
  while (reads(stream)) {
    struct space space;
    if (!input_space(stream, loop_read_buffer(stream->loop), &space)) {
      end(stream, STREAM_END_MEMORY, ENOMEM);
      return;
    }
    ssize_t n = receive(stream->watch.fd, space.start + space.kept, space.room);
    if (n <= 0) {
      end_of_input(stream, n);
      return;
    }
    if (!deliver(stream, space.start, space.kept + (size_t)n)) return;
    if ((size_t)n == space.room) {
      /* One buffer for each stream and turn, so that a fast peer starves nobody. */
      stream->flags |= FLAG_UNREAD;
      if (reads(stream)) rearm(stream);
      return;
    }
    if (!(events & HANGUP_EVENTS)) return;
  }
  stream->flags |= FLAG_UNREAD; /* paused: now, or before anything was read */
}

static void end_tls(struct stream *stream, enum tls_result result, int error) {
  switch (result) {
  case TLS_CLOSED:
    end(stream, STREAM_END_CLOSED, 0);
    break;
  case TLS_BROKEN:
    end(stream, STREAM_END_RESET, error);
    break;
  default:
    end(stream, STREAM_END_TLS, error);
  }
}

/* Decrypts all that was fed. False when the stream is gone. */
static bool read_records(struct stream *stream) {
  while (reads(stream)) {
    struct space space;
    if (!input_space(stream, loop_plain_buffer(stream->loop), &space)) {
      end(stream, STREAM_END_MEMORY, ENOMEM);
      return false;
    }
    size_t filled = 0;
    int error = 0;
    enum tls_result result = TLS_DONE;
    while (result == TLS_DONE && filled < space.room) {
      size_t got = 0;
      result = tls_read(stream->tls, space.start + space.kept + filled, space.room - filled, &got, &error);
      filled += got;
    }
    if (filled && !deliver(stream, space.start, space.kept + filled)) return false;
    if (result == TLS_WANT_READ) return true;
    if (result == TLS_WANT_WRITE) {
      stream->flags |= FLAG_BLOCKED;
      return true;
    }
    if (result != TLS_DONE) {
      end_tls(stream, result, error);
      return false;
    }
  }
  return true;
}

/* False when the stream is gone. */
static bool shake_hands(struct stream *stream) {
  int error = 0;
  enum tls_result result = tls_handshake(stream->tls, &error);
  if (result == TLS_WANT_READ || result == TLS_WANT_WRITE) return true;
  if (result != TLS_DONE) {
    end_tls(stream, result == TLS_CLOSED ? TLS_FAILED : result, error);
    return false;
  }
  stream->state = STATE_OPEN;
  return call(stream, stream->ops->opened);
}

/* Handshake and records from what was fed. False when the stream is gone. */
static bool advance_tls(struct stream *stream) {
  if (stream->state == STATE_HANDSHAKE && !shake_hands(stream)) return false;
  if (!read_records(stream)) return false;
  if (tls_keep(stream->tls)) return true;
  end(stream, STREAM_END_MEMORY, ENOMEM);
  return false;
}

static bool wants_ciphertext(const struct stream *stream) {
  return stream->state == STATE_HANDSHAKE || reads(stream);
}

static void read_tls(struct stream *stream, uint32_t events) {
  /* A record or handshake step may have waited for the socket to take output. */
  if (!wants_ciphertext(stream)) return;
  if ((stream->state == STATE_HANDSHAKE || tls_unfinished(stream->tls)) && !advance_tls(stream)) return;
  if (tls_unfinished(stream->tls)) return;
  while (wants_ciphertext(stream)) {
    uint8_t *data = loop_read_buffer(stream->loop);
    ssize_t n = receive(stream->watch.fd, data, LOOP_READ_BYTES);
    if (n <= 0) {
      end_of_input(stream, n);
      return;
    }
    tls_feed(stream->tls, data, (size_t)n);
    if (!advance_tls(stream) || tls_unfinished(stream->tls)) return;
    if (n == LOOP_READ_BYTES) {
      if (wants_ciphertext(stream)) rearm(stream);
      return;
    }
    if (!(events & HANGUP_EVENTS)) return;
  }
}

static int socket_error(int fd) {
  int error = 0;
  socklen_t len = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) return errno;
  return error;
}

/* TCP is up. False when the stream is gone. */
static bool begin(struct stream *stream) {
  stream->state = stream->tls ? STATE_HANDSHAKE : STATE_OPEN;
  return stream->tls || call(stream, stream->ops->opened);
}

static bool finish_connect(struct stream *stream, uint32_t events) {
  int error = events & (EPOLLERR | EPOLLHUP) ? socket_error(stream->watch.fd) : 0;
  if (error) {
    end_connect(stream, error);
    return false;
  }
  if (!(events & EPOLLOUT)) return false;
  if (stream->ops->connected && !call(stream, stream->ops->connected)) return false;
  return begin(stream);
}

static void stream_ready(struct watch *watch, uint32_t events) {
  struct stream *stream = stream_of(watch);
  if (stream->state == STATE_CONNECTING && !finish_connect(stream, events)) return;
  if (stream->state == STATE_FAILED) return;
  if ((events & EPOLLERR) && stream->flags & FLAG_PAUSED) {
    end(stream, STREAM_END_RESET, socket_error(watch->fd));
    return;
  }
  if ((events & EPOLLOUT) && !unblock(stream)) return;
  if (stream->tls) {
    read_tls(stream, events);
    return;
  }
  if (events & (EPOLLIN | HANGUP_EVENTS)) read_plain(stream, events);
}

/* Input that waited in user space while the stream was paused. */
static void give_again(struct stream *stream) {
  stream->flags &= (uint8_t)~FLAG_RESUMED;
  if (stream->in.len && !deliver(stream, stream->in.data, stream->in.len)) return;
  if (stream->tls && reads(stream) && !advance_tls(stream)) return;
  /* The rest of a TLS record may lie in the socket, too. */
  if (reads(stream) && (stream->tls || stream->flags & FLAG_UNREAD)) rearm(stream);
}

void stream_settle(struct stream *stream) {
  if (stream->state == STATE_FAILED) {
    if (stream->flags & FLAG_REFUSED) {
      end_connect(stream, stream->error);
    } else {
      end(stream, stream->flags & FLAG_TLS_ERROR ? STREAM_END_TLS : STREAM_END_RESET, stream->error);
    }
    return;
  }
  if (!(stream->flags & FLAG_BLOCKED)) stream_flush(stream);
  if (stream->flags & FLAG_RESUMED && reads(stream)) give_again(stream);
}

void stream_pause(struct stream *stream) {
  stream->flags |= FLAG_PAUSED;
}

void stream_resume(struct stream *stream) {
  if (!(stream->flags & FLAG_PAUSED)) return;
  stream->flags &= (uint8_t)~FLAG_PAUSED;
  if (stream->state != STATE_OPEN || stream->flags & FLAG_RECEIVING) return;
  stream->flags |= FLAG_RESUMED;
  enter_list(stream, loop_dirty(stream->loop));
}

void stream_close(struct stream *stream, bool reset) {
  if (stream->state == STATE_CLOSED) return;
  if (!reset && !(stream->flags & FLAG_BLOCKED)) stream_flush(stream);
  dismantle(stream, reset, !reset && stream->state == STATE_OPEN);
}

static void start(struct stream *stream, struct loop *loop, const struct stream_ops *ops, int fd) {
  *stream = (struct stream){.loop = loop, .ops = ops};
  stream->watch.ready = stream_ready;
  stream->watch.fd = fd;
}

/* What a listener accepts has it from the listener. */
static void send_at_once(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static enum status open_socket(int *out, const struct address *to, const struct address *from, struct err *err) {
  int fd = socket(to->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    const char *hint = errno == EMFILE   ? "; raise the limit of open files (ulimit -n)"
                       : errno == ENFILE ? "; raise fs.file-max"
                                         : "";
    return err_set(err, STATUS_IO, "cannot open a socket: %s%s", strerror(errno), hint);
  }
  send_at_once(fd);
  if (from) {
    int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&from->storage, from->len) != 0) {
      int error = errno;
      char text[64];
      address_text(from, text, sizeof text);
      close(fd);
      return err_set(err, STATUS_IO, "cannot connect from %s: %s", text, strerror(error));
    }
  }
  *out = fd;
  return STATUS_OK;
}

enum status stream_connect(struct stream *stream, struct loop *loop, const struct stream_ops *ops,
    const struct address *to, const struct address *from, struct tls_context *tls, const char *server_name,
    struct err *err) {
  *stream = (struct stream){.watch.fd = -1};
  int fd = -1;
  enum status status = open_socket(&fd, to, from, err);
  if (status != STATUS_OK) return status;
  start(stream, loop, ops, fd);
  stream->state = STATE_CONNECTING;
  if (tls) status = tls_session_create(&stream->tls, tls, fd, server_name, err);
  if (status == STATUS_OK && connect(fd, (const struct sockaddr *)&to->storage, to->len) != 0 && errno != EINPROGRESS) {
    stream->flags |= FLAG_REFUSED;
    fail_later(stream, errno);
    return STATUS_OK;
  }
  /* After connect, since a socket without a connection would tell a hang-up. */
  if (status == STATUS_OK) status = loop_watch(loop, &stream->watch, fd, EDGES, err);
  if (status != STATUS_OK) {
    stream->watch.fd = fd;
    dismantle(stream, true, false);
  }
  return status;
}

enum status stream_accept(struct stream *stream, struct loop *loop, const struct stream_ops *ops, int fd,
    struct tls_context *tls, struct err *err) {
  start(stream, loop, ops, fd);
  stream->state = STATE_CONNECTING;
  enum status status = tls ? tls_session_create(&stream->tls, tls, fd, NULL, err) : STATUS_OK;
  if (status == STATUS_OK) status = loop_watch(loop, &stream->watch, fd, EDGES, err);
  if (status != STATUS_OK) {
    stream->watch.fd = fd;
    dismantle(stream, false, false);
    return status;
  }
  begin(stream);
  return STATUS_OK;
}

enum status stream_start_tls(struct stream *stream, struct tls_context *tls, const char *server_name, struct err *err) {
  if (stream->state != STATE_OPEN || stream->tls || unsent(stream) > 0) {
    return err_set(err, STATUS_PROTOCOL, "TLS cannot begin on this stream now");
  }
  enum status status = tls_session_create(&stream->tls, tls, stream->watch.fd, server_name, err);
  if (status != STATUS_OK) return status;
  stream->state = STATE_HANDSHAKE;
  rearm(stream); /* the handshake's first words are ours, and the socket takes them */
  return STATUS_OK;
}

static void accept_again(struct timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct listener *listener = (struct listener *)((char *)timer - offsetof(struct listener, retry));
  struct err err;
  if (loop_rewatch(listener->loop, &listener->watch, EPOLLIN, &err) != STATUS_OK) {
    timer_arm(loop_wheel(listener->loop), timer, loop_now_ns(listener->loop) + ACCEPT_RETRY_NS);
  }
}

/* No descriptors or memory: the connection stays in the backlog, and asking again at once would spin. */
static void pause_accepting(struct listener *listener) {
  struct err err;
  loop_rewatch(listener->loop, &listener->watch, 0, &err);
  listener->retry.fire = accept_again;
  timer_arm(loop_wheel(listener->loop), &listener->retry, loop_now_ns(listener->loop) + ACCEPT_RETRY_NS);
}

static bool out_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void listener_ready(struct watch *watch, uint32_t events) {
  (void)events;
  struct listener *listener = (struct listener *)((char *)watch - offsetof(struct listener, watch));
  struct loop *loop = listener->loop;
  bool alive = true;
  for (int i = 0; i < ACCEPTS_PER_TURN && alive; i++) {
    struct address peer = {.len = sizeof peer.storage};
    int fd = accept4(watch->fd, (struct sockaddr *)&peer.storage, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && errno == EAGAIN) return;
    if (fd < 0 && out_of_resources(errno)) {
      pause_accepting(listener);
      return;
    }
    if (fd < 0) continue;
    struct guard guard;
    guard_enter(loop, &guard, listener);
    listener->accepted(listener, fd, &peer);
    alive = guard_leave(loop, &guard);
  }
}

static enum status listen_failed(int fd, const struct address *address, struct err *err) {
  int error = errno;
  char text[64];
  address_text(address, text, sizeof text);
  if (fd >= 0) close(fd);
  const char *hint = error == EADDRINUSE      ? "; another program listens there, choose another port"
                     : error == EACCES        ? "; ports below 1024 need privileges"
                     : error == EADDRNOTAVAIL ? "; this machine has no such address"
                     : error == EMFILE        ? "; raise the limit of open files (ulimit -n)"
                                              : "";
  return err_set(err, STATUS_IO, "cannot listen on %s: %s%s", text, strerror(error), hint);
}

enum status listener_open(struct listener *listener, struct loop *loop, struct address *address, struct err *err) {
  listener->loop = loop;
  listener->watch = (struct watch){.ready = listener_ready, .fd = -1};
  listener->retry = (struct timer){0};
  int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return listen_failed(fd, address, err);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener->joins) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (bind(fd, (const struct sockaddr *)&address->storage, address->len) != 0) return listen_failed(fd, address, err);
  /* After the bind, which has seen that nobody else is there: from now on others may join. */
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  send_at_once(fd);
  if (listen(fd, 65535) != 0) return listen_failed(fd, address, err);
  address->len = sizeof address->storage;
  if (getsockname(fd, (struct sockaddr *)&address->storage, &address->len) != 0) {
    return listen_failed(fd, address, err);
  }
  enum status status = loop_watch(loop, &listener->watch, fd, EPOLLIN, err);
  if (status != STATUS_OK) close(fd);
  return status;
}

void listener_close(struct listener *listener) {
  int fd = listener->watch.fd;
  if (fd < 0) return;
  guards_clear(listener->loop, listener);
  timer_cancel(loop_wheel(listener->loop), &listener->retry);
  loop_unwatch(listener->loop, &listener->watch);
  close(fd);
}
