#include "net/libp2p/udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
  IN_COUNT = 16, /* datagrams, or trains of them, in one call */
  IN_BYTES = 65536,
  IN_CALLS_MAX = 4, /* of one readiness, so that others have their turn */
  OUT_COUNT = 64,
  OUT_BYTES = 256 * 1024,
  TRAIN_BYTES_MAX = 65000,
  TRAIN_COUNT_MAX = 64,
  SOCKET_BUFFER_BYTES = 4 << 20,
  CONTROL_BYTES = 64,
};

/* Datagrams of one size to one address, the last of which may be shorter; one message of sendmmsg. */
struct train {
  struct sockaddr_storage to;
  socklen_t to_len;
  uint32_t start, len, segment, count, last;
};

struct udp_batch {
  uint8_t in[IN_COUNT][IN_BYTES];
  uint8_t out[OUT_BYTES];
  struct train trains[OUT_COUNT];
  uint32_t out_len, train_count;
  struct mmsghdr messages[OUT_COUNT];
  struct iovec vectors[OUT_COUNT];
  struct sockaddr_storage from[IN_COUNT];
  union {
    struct cmsghdr aligned;
    uint8_t bytes[CONTROL_BYTES];
  } control[OUT_COUNT];
};

static void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

static bool has_option(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static void set_options(struct udp *udp, int fd, sa_family_t family, bool whole, bool without_offload) {
  bool is_v6 = family == AF_INET6;
  set_option(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER_BYTES);
  set_option(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER_BYTES);
  set_option(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVERR : IP_RECVERR, 1);
  if (whole && is_v6) set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  if (whole && !is_v6) set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (without_offload) return;
  set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
  udp->has_gso = has_option(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
}

static void ready(struct watch *watch, uint32_t events);

static enum status refuse(struct udp *udp, int fd, const struct address *address, const char *what, struct err *err) {
  char text[64];
  int error = errno;
  if (fd >= 0) close(fd);
  free(udp->batch);
  udp->batch = NULL;
  address_text(address, text, sizeof text);
  return err_set(err, STATUS_IO, "cannot %s a UDP socket on %s: %s", what, text, strerror(error));
}

enum status udp_open(struct udp *udp, struct loop *loop, const struct udp_ops *ops, struct address *address, bool joins,
    bool whole, bool without_offload, struct err *err) {
  *udp = (struct udp){.watch = {.ready = ready, .fd = -1}, .loop = loop, .ops = ops};
  udp->batch = malloc(sizeof *udp->batch);
  if (!udp->batch) return err_set(err, STATUS_MEMORY, "out of memory for a UDP socket");
  udp->batch->out_len = udp->batch->train_count = 0;
  int fd = socket(address->storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return refuse(udp, fd, address, "make", err);
  set_options(udp, fd, address->storage.ss_family, whole, without_offload);
  if (joins) set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  bool bound = bind(fd, (struct sockaddr *)&address->storage, address->len) == 0 &&
               getsockname(fd, (struct sockaddr *)&address->storage, &address->len) == 0;
  if (!bound) return refuse(udp, fd, address, "bind", err);
  udp->address = *address;
  enum status status = loop_watch(loop, &udp->watch, fd, EPOLLIN, err);
  if (status == STATUS_OK) return status;
  close(fd);
  free(udp->batch);
  udp->batch = NULL;
  return status;
}

void udp_close(struct udp *udp) {
  int fd = udp->watch.fd;
  if (fd < 0) return;
  udp_flush(udp);
  loop_unwatch(udp->loop, &udp->watch);
  close(fd);
  free(udp->batch);
  udp->batch = NULL;
}

/* The size of the datagrams that the kernel joined; 0: it is one. */
static size_t segment_of(struct msghdr *message) {
  for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != IPPROTO_UDP || control->cmsg_type != UDP_GRO) continue;
    int segment;
    memcpy(&segment, CMSG_DATA(control), sizeof segment);
    return segment > 0 ? (size_t)segment : 0;
  }
  return 0;
}

static void take_message(struct udp *udp, uint32_t index) {
  struct udp_batch *batch = udp->batch;
  struct mmsghdr *message = &batch->messages[index];
  struct address from = {.storage = batch->from[index], .len = message->msg_hdr.msg_namelen};
  size_t len = message->msg_len, segment = segment_of(&message->msg_hdr);
  if (!segment) segment = IN_BYTES;
  for (size_t at = 0; at < len; at += segment) {
    size_t part = len - at < segment ? len - at : segment;
    udp->counts.datagrams_in++;
    udp->counts.bytes_in += part;
    udp->ops->received(udp, batch->in[index] + at, part, &from);
  }
}

static int receive_some(struct udp *udp) {
  struct udp_batch *batch = udp->batch;
  for (uint32_t i = 0; i < IN_COUNT; i++) {
    batch->vectors[i] = (struct iovec){.iov_base = batch->in[i], .iov_len = IN_BYTES};
    batch->messages[i].msg_hdr = (struct msghdr){.msg_name = &batch->from[i],
        .msg_namelen = sizeof batch->from[i],
        .msg_iov = &batch->vectors[i],
        .msg_iovlen = 1,
        .msg_control = &batch->control[i],
        .msg_controllen = sizeof batch->control[i]};
  }
  udp->counts.receive_calls++;
  return recvmmsg(udp->watch.fd, batch->messages, IN_COUNT, MSG_DONTWAIT, NULL);
}

static int error_of(struct msghdr *message) {
  for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
    bool tells = (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR) ||
                 (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR);
    if (!tells) continue;
    struct sock_extended_err error;
    memcpy(&error, CMSG_DATA(control), sizeof error);
    return (int)error.ee_errno;
  }
  return 0;
}

/* What the network said of datagrams that were sent. */
static void read_errors(struct udp *udp) {
  uint8_t control[512], data[64];
  for (int i = 0; i < OUT_COUNT && udp->watch.fd >= 0; i++) {
    struct address to = {0};
    struct iovec vector = {.iov_base = data, .iov_len = sizeof data};
    struct msghdr message = {.msg_name = &to.storage,
        .msg_namelen = sizeof to.storage,
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control};
    if (recvmsg(udp->watch.fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    int error = error_of(&message);
    to.len = message.msg_namelen;
    if (error && to.len) udp->ops->unreachable(udp, &to, error);
  }
}

static void receive(struct udp *udp) {
  for (int calls = 0; calls < IN_CALLS_MAX && udp->watch.fd >= 0; calls++) {
    int count = receive_some(udp);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) continue; /* an error of something that was sent: read_errors tells */
    for (int i = 0; i < count; i++)
      take_message(udp, (uint32_t)i);
    if (count < IN_COUNT) return;
  }
}

static void ready(struct watch *watch, uint32_t events) {
  struct udp *udp = (struct udp *)((char *)watch - offsetof(struct udp, watch));
  if (events & EPOLLERR) read_errors(udp);
  if (events & EPOLLIN) receive(udp);
  if (!(events & EPOLLOUT) || !udp->is_blocked) return;
  udp->is_blocked = false;
  loop_rewatch(udp->loop, &udp->watch, EPOLLIN, NULL);
  udp_flush(udp);
  if (!udp->is_blocked) udp->ops->writable(udp);
}

uint8_t *udp_reserve(struct udp *udp) {
  struct udp_batch *batch = udp->batch;
  if (udp->is_blocked) return NULL;
  if (batch->train_count == OUT_COUNT || batch->out_len + UDP_DATAGRAM_MAX > OUT_BYTES) udp_flush(udp);
  return udp->is_blocked ? NULL : batch->out + batch->out_len;
}

static bool joins_train(const struct udp *udp, const struct train *train, size_t len, const struct address *to) {
  return udp->has_gso && train->last == train->segment && len <= train->segment && train->count < TRAIN_COUNT_MAX &&
         train->len + len <= TRAIN_BYTES_MAX && train->to_len == to->len &&
         memcmp(&train->to, &to->storage, to->len) == 0;
}

void udp_commit(struct udp *udp, size_t len, const struct address *to) {
  struct udp_batch *batch = udp->batch;
  struct train *train = batch->train_count ? &batch->trains[batch->train_count - 1] : NULL;
  if (!train || !joins_train(udp, train, len, to)) {
    train = &batch->trains[batch->train_count++];
    *train = (struct train){.to_len = to->len, .start = batch->out_len, .segment = (uint32_t)len};
    memcpy(&train->to, &to->storage, to->len);
  }
  train->len += (uint32_t)len;
  train->last = (uint32_t)len;
  train->count++;
  batch->out_len += (uint32_t)len;
}

static void put_segment(struct msghdr *message, void *control, uint16_t segment) {
  message->msg_control = control;
  message->msg_controllen = CMSG_SPACE(sizeof segment);
  struct cmsghdr *header = CMSG_FIRSTHDR(message);
  *header = (struct cmsghdr){.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof segment)};
  memcpy(CMSG_DATA(header), &segment, sizeof segment);
}

static void prepare(struct udp_batch *batch, uint32_t first) {
  for (uint32_t i = first; i < batch->train_count; i++) {
    struct train *train = &batch->trains[i];
    struct msghdr *message = &batch->messages[i].msg_hdr;
    batch->vectors[i] = (struct iovec){.iov_base = batch->out + train->start, .iov_len = train->len};
    *message = (struct msghdr){
        .msg_name = &train->to, .msg_namelen = train->to_len, .msg_iov = &batch->vectors[i], .msg_iovlen = 1};
    if (train->count > 1) put_segment(message, &batch->control[i], (uint16_t)train->segment);
  }
}

static void keep_rest(struct udp_batch *batch, uint32_t sent) {
  batch->train_count -= sent;
  memmove(batch->trains, batch->trains + sent, batch->train_count * sizeof *batch->trains);
  if (!batch->train_count) batch->out_len = 0;
}

static void wait_for_room(struct udp *udp) {
  udp->is_blocked = true;
  loop_rewatch(udp->loop, &udp->watch, EPOLLIN | EPOLLOUT, NULL);
}

static void count_sent(struct udp *udp, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    udp->counts.datagrams_out += udp->batch->trains[i].count;
    udp->counts.bytes_out += udp->batch->trains[i].len;
  }
}

void udp_flush(struct udp *udp) {
  struct udp_batch *batch = udp->batch;
  uint32_t sent = 0;
  bool tried_again = false;
  if (udp->is_blocked || !batch->train_count) return;
  prepare(batch, 0);
  while (sent < batch->train_count) {
    int count = sendmmsg(udp->watch.fd, batch->messages + sent, batch->train_count - sent, MSG_DONTWAIT);
    udp->counts.send_calls++;
    if (count > 0) {
      count_sent(udp, sent, (uint32_t)count);
      sent += (uint32_t)count;
      tried_again = false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      wait_for_room(udp);
      break;
    } else if (!tried_again) {
      tried_again = true; /* it may be the error of an earlier datagram */
    } else {
      /* EIO: this path cannot cut trains into datagrams. What is dropped here counts as lost on the way. */
      if ((errno == EIO || errno == EINVAL) && batch->trains[sent].count > 1) udp->has_gso = false;
      sent++;
      tried_again = false;
    }
  }
  keep_rest(batch, sent);
}
