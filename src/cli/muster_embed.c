#include "cli/muster_embed.h"

#include "base/rng.h"
#include "driver/driver.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_DEADLINE_MS 15000
#define STOP_DEADLINE_MS 20000
#define WATCH_INTERVAL_MS 200
#define GREAT_POPULATION 10000
#define GREAT_LOGIN_DEADLINE_MS 60000
#define RICOCHET_MESSAGES 1000000 /* of one mailbox: with the usual 1,000 a run would only show that they are full */

/* What the child tells its parent: once that it runs, and at most once that it failed. */
struct message {
  enum status status;
  uint16_t ws_port, api_port, shootout_port, ricochet_port;
  char ricochet_peer[64];
  uint32_t push_window;
  char text[512];
};
_Static_assert(sizeof(struct message) <= 4096, "a message must fit a pipe in one piece");

static volatile sig_atomic_t asked_to_stop, asked_to_drop;

static void on_drop(int signal_number) {
  (void)signal_number;
  asked_to_drop = 1;
}

static void on_terminate(int signal_number) {
  (void)signal_number;
  asked_to_stop = 1;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

static void remove_store(const char *folder) {
  nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static enum status make_store(struct embedded *out, struct err *err) {
  const char *parent = getenv("TMPDIR");
  if (!parent || !parent[0]) parent = "/tmp";
  int len = snprintf(out->data_dir, sizeof out->data_dir, "%s/muster-XXXXXX", parent);
  if (len < 0 || (size_t)len >= sizeof out->data_dir) {
    return err_set(err, STATUS_USAGE, "TMPDIR is too long for the embedded server's store: %.80s...", parent);
  }
  if (mkdtemp(out->data_dir)) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot make a temporary store under %s: %s", parent, strerror(errno));
}

static void make_secrets(struct embedded *out) {
  uint64_t key, secret;
  random_bytes(&key, sizeof key);
  random_bytes(&secret, sizeof secret);
  snprintf(out->app_key, sizeof out->app_key, "embedded%08x", (unsigned)(key & 0xffffffff));
  snprintf(out->secret, sizeof out->secret, "%016llx", (unsigned long long)secret);
}

/* ---- The child ---- */

static void tell(int fd, const struct message *message) {
  ssize_t written = write(fd, message, sizeof *message);
  (void)written; /* a parent that is gone needs no message */
}

/* One descriptor a connection: takes what the system allows. */
static void raise_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void become_child(pid_t parent) {
  struct sigaction action = {.sa_handler = on_terminate};
  sigaction(SIGTERM, &action, NULL);
  struct sigaction drop = {.sa_handler = on_drop};
  sigaction(SIGUSR1, &drop, NULL);
  signal(SIGINT, SIG_IGN); /* what a terminal says is the parent's to handle */
  signal(SIGHUP, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) asked_to_stop = 1;
  raise_descriptors();
}

/* Waits until the parent asks to stop or is gone (OK), or the server fails. */
static enum status watch(struct server *server, int control_fd, struct err *err) {
  struct pollfd control = {.fd = control_fd, .events = POLLIN};
  while (!asked_to_stop) {
    if (poll(&control, 1, WATCH_INTERVAL_MS) > 0) return STATUS_OK;
    if (asked_to_drop) server_drop_sessions(server);
    asked_to_drop = 0;
    if (server_failed(server, err)) return err->status;
  }
  return STATUS_OK;
}

/* The driver that the server is for; NULL: JuggleIM's. */
static const struct driver *shootout_driver(const struct workload *workload) {
  bool shootout = workload->driver && strncmp(workload->driver, "shootout-", 9) == 0;
  return shootout ? driver_find(workload->driver) : NULL;
}

static bool speaks_ricochet(const struct workload *workload) {
  return workload->driver && strcmp(workload->driver, "ricochet") == 0;
}

static int serve(const struct embedded *embedded, const struct workload *workload, int control_fd, int status_fd) {
  struct server_config config;
  server_config_defaults(&config);
  config.bind_host = "127.0.0.1";
  config.bind_more = workload->target_addresses;
  config.api_port = config.navigator_port = config.ws_port = config.admin_port = 0;
  config.shootout = shootout_driver(workload) != NULL;
  config.ricochet = speaks_ricochet(workload);
  config.ricochet_messages = RICOCHET_MESSAGES;
  config.data_dir = embedded->data_dir;
  config.ack = strcmp(workload->ack_policy, "received") == 0 ? ACK_RECEIVED : ACK_DURABLE;
  config.rate_limits = workload->rate_limits;
  if (workload->push_window) config.push_window = workload->push_window;
  config.max_connections = workload_online(workload);
  /* A great population starves this machine while it connects: that is no attack. */
  if (config.max_connections >= GREAT_POPULATION) config.login_deadline_ms = GREAT_LOGIN_DEADLINE_MS;
  config.app_key = embedded->app_key;
  config.app_secret = embedded->secret;

  struct err err = {0};
  struct message message = {0};
  struct server *server = NULL;
  message.status = server_start(&server, &config, &err);
  if (message.status == STATUS_OK) {
    message.ws_port = config.ws_port;
    message.api_port = config.api_port;
    message.shootout_port = config.shootout_port;
    message.ricochet_port = config.ricochet_udx.port;
    memcpy(message.ricochet_peer, config.ricochet_peer, sizeof message.ricochet_peer);
    message.push_window = config.push_window;
    tell(status_fd, &message);
    message.status = watch(server, control_fd, &err);
    server_stop(server);
    if (message.status == STATUS_OK) return 0;
  }
  memcpy(message.text, err.text, sizeof message.text);
  tell(status_fd, &message);
  return 1;
}

/* ---- The parent ---- */

static enum status spawn(struct embedded *out, const struct workload *workload, struct err *err) {
  int control[2], status[2];
  if (pipe2(control, O_CLOEXEC) != 0) return err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
  if (pipe2(status, O_CLOEXEC) != 0) {
    err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    close(control[0]);
    close(control[1]);
    return err->status;
  }
  pid_t parent = getpid();
  out->pid = fork();
  if (out->pid == 0) {
    close(control[1]);
    close(status[0]);
    become_child(parent);
    int code = serve(out, workload, control[0], status[1]);
    remove_store(out->data_dir);
    _exit(code);
  }
  close(control[0]);
  close(status[1]);
  out->control_fd = control[1];
  out->status_fd = status[0];
  if (out->pid > 0) return STATUS_OK;
  err_set(err, STATUS_IO, "cannot fork the embedded musterd: %s", strerror(errno));
  close(out->control_fd);
  close(out->status_fd);
  return err->status;
}

/* True when a whole message came before the deadline; *timed_out when nothing came at all. */
static bool hear(int fd, int deadline_ms, struct message *out, bool *timed_out) {
  struct pollfd status = {.fd = fd, .events = POLLIN};
  int ready;
  do {
    ready = poll(&status, 1, deadline_ms);
  } while (ready < 0 && errno == EINTR);
  *timed_out = ready == 0;
  return ready > 0 && read(fd, out, sizeof *out) == (ssize_t)sizeof *out;
}

/* Reaps the child; any other end than exit code 0 is an error. */
static enum status reap(struct embedded *embedded, bool kill_it, struct err *err) {
  if (kill_it) kill(embedded->pid, SIGKILL);
  int state = 0;
  while (waitpid(embedded->pid, &state, 0) < 0 && errno == EINTR)
    ;
  close(embedded->control_fd);
  close(embedded->status_fd);
  remove_store(embedded->data_dir);
  if (kill_it) return err_set(err, STATUS_TIMEOUT, "the embedded musterd did not stop and was killed");
  if (WIFSIGNALED(state)) {
    return err_set(
        err, STATUS_IO, "the embedded musterd died from signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
  }
  if (WEXITSTATUS(state) == 0) return STATUS_OK;
  return err_set(err, STATUS_IO, "the embedded musterd ended with exit code %d", WEXITSTATUS(state));
}

static bool musterd_speaks(const char *driver) {
  return !driver || strcmp(driver, "juggle") == 0 || strcmp(driver, "ricochet") == 0 ||
         strncmp(driver, "shootout-", 9) == 0;
}

/* Waits until it says where it listens; whoever does not is gone afterwards. */
static enum status hear_ready(struct embedded *embedded, struct message *message, struct err *err) {
  bool timed_out = false;
  if (!hear(embedded->status_fd, START_DEADLINE_MS, message, &timed_out)) {
    if (reap(embedded, timed_out, err) == STATUS_OK) {
      err_set(err, STATUS_IO, "the embedded musterd ended before it was ready");
    } else if (timed_out) {
      err_set(err, STATUS_TIMEOUT, "the embedded musterd was not ready after %d s", START_DEADLINE_MS / 1000);
    }
    return err->status;
  }
  if (message->status == STATUS_OK) return STATUS_OK;
  reap(embedded, false, NULL);
  return err_set(err, message->status, "the embedded musterd did not start: %.400s", message->text);
}

static void write_urls(struct embedded *out, const struct workload *workload, const struct message *message) {
  const struct driver *driver = shootout_driver(workload);
  if (speaks_ricochet(workload)) {
    snprintf(
        out->ws_url, sizeof out->ws_url, "ricochet://127.0.0.1:%u/%s", message->ricochet_port, message->ricochet_peer);
  } else if (driver) {
    int scheme_len = (int)strcspn(driver->schemes, ",");
    snprintf(
        out->ws_url, sizeof out->ws_url, "%.*s://127.0.0.1:%u", scheme_len, driver->schemes, message->shootout_port);
  } else {
    snprintf(out->ws_url, sizeof out->ws_url, "ws://127.0.0.1:%u", message->ws_port);
  }
  snprintf(out->api_url, sizeof out->api_url, "http://127.0.0.1:%u/apigateway", message->api_port);
}

enum status embedded_start(struct embedded *out, const struct workload *workload, struct err *err) {
  if (!musterd_speaks(workload->driver)) {
    return err_set(
        err, STATUS_USAGE, "the embedded musterd does not speak %s: give the --target to drive", workload->driver);
  }
  *out = (struct embedded){0};
  enum status status = make_store(out, err);
  if (status != STATUS_OK) return status;
  make_secrets(out);
  status = spawn(out, workload, err);
  if (status != STATUS_OK) {
    remove_store(out->data_dir);
    return status;
  }
  struct message message = {0};
  status = hear_ready(out, &message, err);
  if (status != STATUS_OK) return status;
  out->push_window = message.push_window;
  write_urls(out, workload, &message);
  return STATUS_OK;
}

enum status embedded_stop(struct embedded *embedded, struct err *err) {
  ssize_t asked = write(embedded->control_fd, "q", 1);
  (void)asked; /* a child that is gone already says why below */
  struct message message = {0};
  bool timed_out = false;
  bool failed = hear(embedded->status_fd, STOP_DEADLINE_MS, &message, &timed_out);
  if (failed) err_set(err, message.status, "the embedded musterd failed during the run: %.400s", message.text);
  enum status status = reap(embedded, timed_out, failed ? NULL : err);
  return failed ? message.status : status;
}
