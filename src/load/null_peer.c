#include "load/null_peer.h"

#include "load/null_client.h"
#include "net/address.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_DEADLINE_MS 10000

/* --- what it speaks --- */

static const struct null_dialect *const dialects[] = {&null_juggle, &null_mqtt, &null_nats, &null_redis, &null_socketio,
    &null_shootout_json, &null_shootout_binary, &null_shootout_phoenix, &null_shootout_cable};
#define DIALECTS (sizeof dialects / sizeof dialects[0])

static const struct null_dialect *dialect_of(const char *driver) {
  for (size_t i = 0; i < DIALECTS; i++) {
    if (strcmp(dialects[i]->driver, driver) == 0) return dialects[i];
  }
  return NULL;
}

/* What stands behind the host of a target, which chooses what a driver does: path and query. */
static enum status check_target(
    const char *target, const struct null_dialect *dialect, struct url *url, struct err *err) {
  *url = (struct url){0};
  if (!target) return STATUS_OK;
  enum status status = url_parse(target, url, err);
  if (status == STATUS_OK && dialect == &null_socketio && strstr(url->path, "message=")) {
    return err_set(err, STATUS_USAGE, "the null peer emits 'message': leave message= out of --target");
  }
  if (status != STATUS_OK || strcmp(url->scheme, dialect->scheme) == 0) return status;
  if (dialect->message && (strcmp(url->scheme, "ws") == 0 || strcmp(url->scheme, "juggle") == 0)) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "the null peer speaks %s:// only: %s:// cannot be calibrated", dialect->scheme, url->scheme);
}

enum status null_peer_check(const struct workload *workload, const struct driver *driver, struct err *err) {
  const struct null_dialect *dialect = dialect_of(driver->name);
  struct url url;
  if (!dialect) {
    return err_set(err, STATUS_USAGE,
        "the null peer does not speak the protocol of driver %s, which cannot be calibrated: docs/find.md says which "
        "can",
        driver->name);
  }
  bool known = dialect->topologies >> workload->topology & 1;
  if (!known || workload_is_closed(workload) || workload->storm || workload->backlog) {
    return err_set(err, STATUS_USAGE,
        "'%.40s' cannot be calibrated over %s: docs/find.md says which workloads can, and all of them at a --rate",
        workload->name, driver->name);
  }
  return check_target(workload->target, dialect, &url, err);
}

/* --- the process --- */

static void on_accepted(struct listener *listener, int fd, const struct address *from) {
  (void)from;
  null_client_accept((struct null_house *)(void *)((char *)listener - offsetof(struct null_house, listener)), fd);
}

static void on_control(struct watch *watch, uint32_t events) {
  (void)events;
  struct null_house *house = (struct null_house *)(void *)((char *)watch - offsetof(struct null_house, control));
  house->stop = true;
}

static enum status open_house(struct null_house *house, int control_fd, struct address *address, struct err *err) {
  house->user = calloc(house->users, sizeof(struct null_client *));
  if (!house->user) return err_set(err, STATUS_MEMORY, "out of memory for the null peer");
  house->listener.accepted = on_accepted;
  house->control.ready = on_control;
  house->control.fd = -1;
  enum status status = loop_create(&house->loop, err);
  if (status == STATUS_OK) status = address_resolve("127.0.0.1", 0, address, err);
  if (status == STATUS_OK) status = listener_open(&house->listener, house->loop, address, err);
  if (status == STATUS_OK) status = loop_watch(house->loop, &house->control, control_fd, EPOLLIN, err);
  return status;
}

/* The whole life of the child; its memory goes with its process. */
static int serve(struct null_house *house, int control_fd, int report_fd) {
  struct address address;
  struct rlimit limit;
  char where[64] = "";
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (open_house(house, control_fd, &address, NULL) != STATUS_OK) return 1;
  address_text(&address, where, sizeof where);
  if (write(report_fd, where, sizeof where) != (ssize_t)sizeof where) return 1;
  while (!house->stop)
    loop_turn(house->loop, UINT64_MAX);
  return 0;
}

static void become_child(pid_t parent) {
  signal(SIGINT, SIG_IGN); /* what a terminal says is the parent's to handle */
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

static enum status hear(int fd, char where[64], struct err *err) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  int ready;
  do {
    ready = poll(&poll_fd, 1, START_DEADLINE_MS);
  } while (ready < 0 && errno == EINTR);
  if (ready > 0 && read(fd, where, 64) == 64) return STATUS_OK;
  return err_set(err, STATUS_IO, "the null peer did not start");
}

static enum status spawn(
    struct null_peer *out, struct null_house *house, const char *path, int control[2], int report[2], struct err *err) {
  pid_t parent = getpid();
  out->pid = fork();
  if (out->pid == 0) {
    close(control[1]);
    close(report[0]);
    become_child(parent);
    _exit(serve(house, control[0], report[1]));
  }
  close(control[0]);
  close(report[1]);
  out->control_fd = control[1];
  if (out->pid < 0) return err_set(err, STATUS_IO, "cannot fork the null peer: %s", strerror(errno));
  char where[64];
  enum status status = hear(report[0], where, err);
  if (status != STATUS_OK) return status;
  snprintf(out->target, sizeof out->target, "%s://%.40s%s", house->dialect->scheme, where, path);
  snprintf(out->api_url, sizeof out->api_url, "http://%.40s/apigateway", where);
  return STATUS_OK;
}

enum status null_peer_start(
    struct null_peer *out, const struct workload *workload, const struct driver *driver, struct err *err) {
  *out = (struct null_peer){.pid = -1, .control_fd = -1};
  int control[2], report[2];
  struct url url;
  struct null_house house = {.dialect = dialect_of(driver->name), .users = workload->clients, .groups = 1};
  enum status status = null_peer_check(workload, driver, err);
  if (status == STATUS_OK) status = check_target(workload->target, house.dialect, &url, err);
  if (status != STATUS_OK) return status;
  bool apart = workload->topology == TOPOLOGY_GROUPS && workload->groups > 1 && !workload->shared_groups;
  house.echoes = strstr(url.path, "echo=on") != NULL;
  if (apart) house.groups = workload->groups;
  if (pipe2(control, O_CLOEXEC) != 0) return err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
  if (pipe2(report, O_CLOEXEC) != 0) {
    err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    close(control[0]);
    close(control[1]);
    return STATUS_IO;
  }
  status = spawn(out, &house, url.path, control, report, err);
  close(report[0]);
  if (status != STATUS_OK) null_peer_stop(out);
  return status;
}

void null_peer_stop(struct null_peer *peer) {
  if (peer->control_fd >= 0) close(peer->control_fd);
  peer->control_fd = -1;
  if (peer->pid > 0) {
    while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  peer->pid = -1;
}
