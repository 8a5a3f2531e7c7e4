/* Plain HTTP on the WebSocket port (section 1.1): the upgrade of /im, and three small answers. */
#include "build_facts.h"
#include "net/http.h"
#include "server/gateway.h"
#include "server/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUSTERD_VERSION_JSON "{\"version\":\"" SERVER_VERSION_PREFIX MUSTER_VERSION "\"}"

static void answer(struct session *session, const char *status, const char *body) {
  char head[256];
  int len = snprintf(head, sizeof head,
      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
      "Access-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n",
      status, strlen(body));
  if (!session_write_raw(session, head, (size_t)len)) return;
  if (!session_write_raw(session, body, strlen(body))) return;
  session_finish(session);
}

static void answer_metrics(struct session *session) {
  char *json = metrics_json(session->gateway->metrics);
  if (json) {
    answer(session, "200 OK", json);
  } else {
    answer(session, "500 Internal Server Error", "{\"error\":\"out of memory\"}");
  }
  free(json);
}

static void upgrade(struct session *session, const struct http_head *head) {
  char text[512];
  size_t len = 0;
  enum status status = ws_answer_request(head, text, sizeof text, &len, NULL);
  if (!session_write_raw(session, text, len)) return;
  if (status != STATUS_OK) {
    session_finish(session);
    return;
  }
  uint32_t max = session->gateway->config->message_max_bytes;
  ws_init(&session->ws, WS_SERVER, max < SESSION_CONNECT_BYTES_MAX ? max : SESSION_CONNECT_BYTES_MAX);
  session->state = SESSION_AWAIT_CONNECT;
  stat_add(&session->gateway->stats.upgraded, 1);
}

static bool path_is(struct view target, const char *path) {
  const uint8_t *query = target.len ? memchr(target.data, '?', target.len) : NULL;
  if (query) target.len = (size_t)(query - target.data);
  return view_is(target, path);
}

static void route(struct session *session, const struct http_head *head) {
  if (path_is(head->target, "/im")) {
    upgrade(session, head);
  } else if (path_is(head->target, "/health")) {
    bool failed = core_failed(session->gateway->core, NULL);
    answer(session, failed ? "503 Service Unavailable" : "200 OK",
        failed ? "{\"status\":\"the store failed\"}" : "{\"status\":\"ok\"}");
  } else if (path_is(head->target, "/version")) {
    answer(session, "200 OK", MUSTERD_VERSION_JSON);
  } else if (path_is(head->target, "/metrics")) {
    answer_metrics(session);
  } else {
    answer(session, "404 Not Found", "{\"error\":\"no such path\"}");
  }
}

size_t session_http_received(struct session *session, const uint8_t *data, size_t len) {
  struct http_head head;
  size_t used = 0;
  enum http_result result = http_read_request(data, len, &head, &used, NULL);
  if (result == HTTP_PARTIAL && len < HTTP_HEAD_MAX) return 0;
  if (result == HTTP_COMPLETE) {
    route(session, &head);
    return used;
  }
  stat_add(&session->gateway->stats.protocol_errors, 1);
  answer(session, "400 Bad Request", "{\"error\":\"not an HTTP request\"}");
  return len;
}
