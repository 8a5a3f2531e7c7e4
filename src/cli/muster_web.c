#include "cli/muster_web.h"

#include "base/clock.h"
#include "cli/muster_options.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIEWERS_MAX 16
#define CONNECTIONS_MAX 64
#define SILENCE_S 3u /* of a connection that is not waiting for events: then it makes room for another */
#define EVENT_BYTES 4096
#define METRICS_BYTES 8192

extern const char html_live[], html_live_end[]; /* cmake/page.cmake */

/* One open page: a response that never ends. */
struct viewer {
  struct web *web;
  struct MHD_Connection *connection; /* NULL: the place is free */
  uint64_t seen;                     /* the event that it has got */
  size_t sent;                       /* bytes of the next one that are out */
  bool waits;                        /* suspended until there is another event */
};

enum web_stage { WEB_RUNNING, WEB_OVER };

struct web {
  struct MHD_Daemon *daemon;
  char url[96];
  bool with_page;
  enum web_stage stage;
  struct viewer viewer[VIEWERS_MAX];
  uint64_t event; /* number of the newest event; 0: none yet */
  char text[EVENT_BYTES];
  size_t len;
  struct live live;
  const char *html; /* the report; not owned */
  size_t html_len;
};

/* --- events --- */

static void wake_viewers(struct web *web) {
  for (size_t i = 0; i < VIEWERS_MAX; i++) {
    struct viewer *viewer = &web->viewer[i];
    if (!viewer->connection || !viewer->waits) continue;
    viewer->waits = false;
    MHD_resume_connection(viewer->connection);
  }
}

/* A viewer in the midst of an event keeps its rest: texts change only between two of them. */
static bool all_between_events(const struct web *web) {
  for (size_t i = 0; i < VIEWERS_MAX; i++) {
    if (web->viewer[i].connection && web->viewer[i].sent > 0) return false;
  }
  return true;
}

static void set_event(struct web *web, const char *name, const char *data) {
  int len = snprintf(web->text, sizeof web->text, "%s%s%sdata: %s\n\n", name ? "event: " : "", name ? name : "",
      name ? "\n" : "", data);
  if (len < 0 || (size_t)len >= sizeof web->text) return;
  web->len = (size_t)len;
  web->event++;
  wake_viewers(web);
}

static ssize_t read_events(void *context, uint64_t position, char *out, size_t max) {
  struct viewer *viewer = context;
  struct web *web = viewer->web;
  (void)position;
  if (viewer->seen == web->event) {
    if (web->stage == WEB_OVER) return MHD_CONTENT_READER_END_OF_STREAM;
    viewer->waits = true;
    MHD_suspend_connection(viewer->connection);
    return 0;
  }
  size_t rest = web->len - viewer->sent, take = rest < max ? rest : max;
  memcpy(out, web->text + viewer->sent, take);
  viewer->sent += take;
  if (viewer->sent == web->len) {
    viewer->seen = web->event;
    viewer->sent = 0;
  }
  return (ssize_t)take;
}

static void forget_viewer(void *context) {
  struct viewer *viewer = context;
  *viewer = (struct viewer){0};
}

/* --- requests --- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, const char *text,
    size_t len, enum MHD_ResponseMemoryMode mode) {
  /* The library takes no const where it only reads. */
  struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, mode);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close"); /* so that the end sees who is done */
  enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result answer_line(struct MHD_Connection *connection, unsigned status, const char *line) {
  return answer(connection, status, "text/plain; charset=utf-8", line, strlen(line), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_events(struct web *web, struct MHD_Connection *connection) {
  struct viewer *viewer = web->viewer;
  while (viewer < web->viewer + VIEWERS_MAX && viewer->connection)
    viewer++;
  if (viewer == web->viewer + VIEWERS_MAX) {
    return answer_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages follow this run\n");
  }
  *viewer = (struct viewer){.web = web, .connection = connection};
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, EVENT_BYTES, read_events, viewer, forget_viewer);
  if (!response) {
    forget_viewer(viewer);
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result answer_metrics(const struct web *web, struct MHD_Connection *connection) {
  char text[METRICS_BYTES];
  size_t len = live_openmetrics(&web->live, text, sizeof text);
  if (len == 0) return answer_line(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "the metrics do not fit\n");
  return answer(connection, MHD_HTTP_OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text, len,
      MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result respond(void *context, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *body, size_t *body_len, void **request) {
  struct web *web = context;
  (void)version;
  (void)body;
  static const char html[] = "text/html; charset=utf-8";
  if (!*request) { /* headers only: a body is read, and ignored, before the answer */
    *request = web;
    return MHD_YES;
  }
  if (*body_len > 0) {
    *body_len = 0;
    return MHD_YES;
  }
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
    return answer_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
  if (strcmp(path, "/metrics") == 0) return answer_metrics(web, connection);
  if (strcmp(path, "/health") == 0) return answer_line(connection, MHD_HTTP_OK, "ok\n");
  if (web->with_page && strcmp(path, "/") == 0) {
    return answer(
        connection, MHD_HTTP_OK, html, html_live, (size_t)(html_live_end - html_live), MHD_RESPMEM_PERSISTENT);
  }
  if (web->with_page && strcmp(path, "/events") == 0) return answer_events(web, connection);
  if (web->html && strcmp(path, "/report") == 0)
    return answer(connection, MHD_HTTP_OK, html, web->html, web->html_len, MHD_RESPMEM_PERSISTENT);
  return answer_line(connection, MHD_HTTP_NOT_FOUND, web->with_page ? "try / or /metrics\n" : "try /metrics\n");
}

/* --- life --- */

static enum status read_listen(const char *option, const char *text, struct address *out, struct err *err) {
  char host[80] = "127.0.0.1";
  const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
  uint64_t port;
  if (colon) snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
  size_t len = strlen(host);
  if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
    host[len - 1] = '\0';
    memmove(host, host + 1, len - 1);
  }
  bool is_sound = host[0] && (!colon || (size_t)(colon - text) < sizeof host) && parse_count(digits, 65535, &port);
  if (is_sound && address_resolve(host, (uint16_t)port, out, err) == STATUS_OK) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "%s %.60s: give a port, or HOST:PORT of this machine, as 127.0.0.1:8080", option, text);
}

static uint16_t *port_of(struct address *address) {
  return address->storage.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&address->storage)->sin6_port
                                                : &((struct sockaddr_in *)&address->storage)->sin_port;
}

static enum status note_url(struct web *web, struct address at, struct err *err) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_BIND_PORT);
  if (!info) return err_set(err, STATUS_IO, "the HTTP library does not tell the port it listens on");
  char text[80];
  *port_of(&at) = htons(info->port);
  address_text(&at, text, sizeof text);
  snprintf(web->url, sizeof web->url, "http://%s/%s", text, web->with_page ? "" : "metrics");
  return STATUS_OK;
}

enum status web_open(struct web **out, const char *option, const char *listen, bool with_page, struct err *err) {
  struct address at = {0};
  enum status status = read_listen(option, listen, &at, err);
  if (status != STATUS_OK) return status;
  struct web *web = calloc(1, sizeof *web);
  if (!web) return err_set(err, STATUS_MEMORY, "out of memory for %s", option);
  web->with_page = with_page;
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
  if (at.storage.ss_family == AF_INET6) flags |= MHD_USE_IPv6;
  errno = 0;
  web->daemon = MHD_start_daemon(flags, 0, NULL, NULL, respond, web, MHD_OPTION_SOCK_ADDR, &at.storage,
      MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384,
      MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_END);
  if (!web->daemon) {
    int error = errno;
    free(web);
    return err_set(err, STATUS_USAGE, "%s %.60s: cannot listen there: %s", option, listen,
        error ? strerror(error) : "the HTTP server did not start");
  }
  status = note_url(web, at, err);
  if (status != STATUS_OK) {
    web_close(web);
    return status;
  }
  *out = web;
  return STATUS_OK;
}

void web_close(struct web *web) {
  if (!web) return;
  web->stage = WEB_OVER;
  wake_viewers(web); /* the library wants no suspended connection when it stops */
  MHD_run(web->daemon);
  MHD_stop_daemon(web->daemon);
  free(web);
}

const char *web_url(const struct web *web) {
  return web->url;
}

int web_fd(const struct web *web) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

void web_serve(struct web *web) {
  MHD_run(web->daemon);
}

void web_show(struct web *web, const struct live *live) {
  char json[EVENT_BYTES - 16];
  web->live = *live;
  size_t len = live_json(live, json, sizeof json - 1);
  if (len == 0 || !all_between_events(web)) return;
  json[len] = '\0';
  set_event(web, NULL, json);
  web_serve(web);
}

static bool is_idle(const struct web *web) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return !info || info->num_connections == 0;
}

static bool has_viewers(const struct web *web) {
  for (size_t i = 0; i < VIEWERS_MAX; i++) {
    if (web->viewer[i].connection) return true;
  }
  return false;
}

static void serve_until(struct web *web, uint64_t end_ns, bool (*is_over)(const struct web *web)) {
  while (!is_over(web) && clock_now_ns() < end_ns) {
    struct pollfd fd = {web_fd(web), POLLIN, 0};
    poll(&fd, 1, 50);
    web_serve(web);
  }
}

void web_finish(struct web *web, const char *html, size_t len, const char *why) {
  bool was_watched = has_viewers(web);
  uint64_t end_ns = clock_now_ns() + WEB_LINGER_S * NS_PER_SEC;
  serve_until(web, end_ns, all_between_events);
  web->html = html;
  web->html_len = len;
  web->stage = WEB_OVER;
  set_event(web, html ? "report" : "end", html ? "/report" : why);
  if (was_watched) serve_until(web, end_ns, is_idle);
}
