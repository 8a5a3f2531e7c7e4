#include "server/rest.h"

#include "base/buf.h"
#include "base/rng.h"
#include "net/address.h"
#include "wire/juggle.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct rest {
  struct rest_config config;
  struct MHD_Daemon *daemon;
};

/* One request while its body comes in. */
struct exchange {
  struct buf body;
  struct rest_answer refusal; /* of authorize */
  bool refused, too_large;
};

const char *rest_header(const struct rest_request *request, const char *name) {
  const char *value = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
  return value && *value ? value : NULL;
}

const char *rest_query(const struct rest_request *request, const char *name) {
  const char *value = MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
  return value && *value ? value : NULL;
}

bool rest_secret_equal(const char *a, const char *b) {
  size_t len = strlen(a), other = strlen(b);
  volatile uint8_t difference = len != other;
  for (size_t i = 0; i < len; i++)
    difference |= (uint8_t)(a[i] ^ (other ? b[i % other] : 1));
  return difference == 0;
}

static unsigned status_of(int32_t code) {
  switch (code) {
  case JUGGLE_API_NO_APPKEY:
  case JUGGLE_API_NO_NONCE:
  case JUGGLE_API_NO_TIMESTAMP:
  case JUGGLE_API_NO_SIGNATURE:
  case JUGGLE_API_BAD_BODY:
  case JUGGLE_API_NO_PARAMETER:
    return MHD_HTTP_BAD_REQUEST;
  case JUGGLE_API_BAD_SIGNATURE:
    return MHD_HTTP_FORBIDDEN;
  case JUGGLE_TOKEN_ILLEGAL:
  case JUGGLE_TOKEN_BAD:
    return MHD_HTTP_UNAUTHORIZED;
  case JUGGLE_API_NO_APP:
  case JUGGLE_API_TIMEOUT:
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
  default:
    return MHD_HTTP_OK;
  }
}

/* The envelope as text, to be freed; takes over answer->data. */
static char *envelope(struct rest_answer *answer) {
  json_t *root = json_object();
  const char *msg = answer->msg ? answer->msg : juggle_code_text(answer->code);
  if (answer->code == JUGGLE_OK) msg = "success";
  json_object_set_new(root, "code", json_integer(answer->code));
  json_object_set_new(root, "msg", json_string(msg ? msg : ""));
  if (answer->code == JUGGLE_OK) {
    json_object_set_new(root, "data", answer->data ? answer->data : json_null());
  } else {
    json_decref(answer->data);
  }
  answer->data = NULL;
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text;
}

static void request_id(const char *prefix, char *out, size_t size) {
  static const char alphabet[64] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  uint8_t bytes[11];
  random_bytes(bytes, sizeof bytes);
  char id[12] = "";
  for (size_t i = 0; i < sizeof bytes; i++)
    id[i] = alphabet[bytes[i] & 63];
  snprintf(out, size, "%s%s", prefix, id);
}

static void add_cors(struct MHD_Response *response) {
  MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
  MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  MHD_add_response_header(response, "Access-Control-Allow-Headers", "*");
}

static enum MHD_Result reply(const struct rest *rest, struct MHD_Connection *connection, struct rest_answer *answer) {
  char *body = answer->page ? answer->page : answer->text ? strdup(answer->text) : envelope(answer);
  if (!body) return MHD_NO;
  struct MHD_Response *response = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_FREE);
  if (!response) {
    free(body);
    return MHD_NO;
  }
  char id[64];
  request_id(rest->config.request_id_prefix, id, sizeof id);
  MHD_add_response_header(response, "Content-Type", answer->type ? answer->type : "application/json; charset=utf-8");
  MHD_add_response_header(response, "request-id", id);
  if (rest->config.cors) add_cors(response);
  unsigned status = answer->http_status ? answer->http_status : status_of(answer->code);
  enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

static void gather(struct exchange *exchange, const char *data, size_t len) {
  if (exchange->refused || exchange->too_large) return;
  if (exchange->body.len + len > REST_BODY_MAX || !buf_append(&exchange->body, data, len)) {
    exchange->too_large = true;
    buf_free(&exchange->body);
  }
}

static struct exchange *begin(const struct rest *rest, const struct rest_request *request) {
  struct exchange *exchange = calloc(1, sizeof *exchange);
  if (!exchange || !rest->config.authorize || strcmp(request->method, MHD_HTTP_METHOD_OPTIONS) == 0) return exchange;
  int32_t code = rest->config.authorize(rest->config.context, request, &exchange->refusal);
  exchange->refusal.code = code;
  exchange->refused = code != JUGGLE_OK;
  return exchange;
}

static void decide(
    const struct rest *rest, struct rest_request *request, struct exchange *exchange, struct rest_answer *answer) {
  if (rest->config.cors && strcmp(request->method, MHD_HTTP_METHOD_OPTIONS) == 0) {
    answer->text = "";
    answer->http_status = MHD_HTTP_NO_CONTENT;
  } else if (exchange->refused) {
    *answer = exchange->refusal;
  } else if (exchange->too_large) {
    answer->code = JUGGLE_API_BAD_BODY;
    answer->http_status = MHD_HTTP_CONTENT_TOO_LARGE;
  } else {
    request->body = view_of(exchange->body.data, exchange->body.len);
    rest->config.handle(rest->config.context, request, answer);
  }
}

/* Two lengths, a length beside a coding, another coding than chunked, a blank behind a name: a proxy in front may see
 * another end of the body than libmicrohttpd does, and what stands behind it as somebody's next request. */
struct framing {
  unsigned lengths, codings;
  bool is_odd;
};

static enum MHD_Result note_framing(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  (void)kind;
  struct framing *framing = context;
  bool is_length = strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  bool is_coding = strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
  framing->lengths += is_length;
  framing->codings += is_coding;
  bool is_odd = strpbrk(name, " \t") || (is_coding && (!value || strcasecmp(value, "chunked") != 0)) ||
                (is_length && (!value || value[strspn(value, "0123456789")]));
  framing->is_odd = framing->is_odd || is_odd;
  return MHD_YES;
}

static bool is_ambiguous(struct MHD_Connection *connection) {
  struct framing framing = {0};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note_framing, &framing);
  return framing.is_odd || framing.lengths + framing.codings > 1;
}

static enum MHD_Result accessed(void *context, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *data, size_t *data_len, void **state) {
  (void)version;
  const struct rest *rest = context;
  /* What answers GET answers HEAD; libmicrohttpd leaves the body out. */
  bool is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
  struct rest_request request = {
      .method = is_head ? MHD_HTTP_METHOD_GET : method, .path = path, .connection = connection};
  struct exchange *exchange = *state;
  if (!exchange) {
    /* Answered before the body, the connection ends with it. */
    if (is_ambiguous(connection)) return reply(rest, connection, &(struct rest_answer){.code = JUGGLE_API_BAD_BODY});
    *state = begin(rest, &request);
    return *state ? MHD_YES : MHD_NO;
  }
  if (*data_len) {
    gather(exchange, data, *data_len);
    *data_len = 0;
    return MHD_YES;
  }
  struct rest_answer answer = {0};
  decide(rest, &request, exchange, &answer);
  return reply(rest, connection, &answer);
}

static void completed(
    void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode how) {
  (void)context;
  (void)connection;
  (void)how;
  struct exchange *exchange = *state;
  if (!exchange) return;
  buf_free(&exchange->body);
  free(exchange);
  *state = NULL;
}

static void say_nothing(void *context, const char *format, va_list args) {
  (void)context;
  (void)format;
  (void)args;
}

enum status rest_start(struct rest **out, const struct rest_config *config, uint16_t *port, struct err *err) {
  struct address address;
  enum status status = address_resolve(config->host, config->port, &address, err);
  if (status != STATUS_OK) return status;
  struct rest *rest = calloc(1, sizeof *rest);
  if (!rest) return err_set(err, STATUS_MEMORY, "%s: out of memory", config->name);
  rest->config = *config;
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG;
  if (address.storage.ss_family == AF_INET6) flags |= MHD_USE_IPv6;
  struct MHD_OptionItem options[] = {
      {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)say_nothing, NULL},
      {MHD_OPTION_SOCK_ADDR, 0, &address.storage},
      {MHD_OPTION_CONNECTION_TIMEOUT, 60, NULL},
      {MHD_OPTION_CONNECTION_LIMIT, 4096, NULL},
      {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)completed, rest},
      {config->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (intptr_t)config->threads, NULL},
      {MHD_OPTION_END, 0, NULL},
  };
  errno = 0;
  rest->daemon =
      MHD_start_daemon(flags, config->port, NULL, NULL, accessed, rest, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
  if (!rest->daemon) {
    free(rest);
    return err_set(err, STATUS_IO, "%s: cannot listen on %s port %u: %s", config->name, config->host, config->port,
        errno ? strerror(errno) : "is the port in use?");
  }
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(rest->daemon, MHD_DAEMON_INFO_BIND_PORT);
  *port = info ? info->port : config->port;
  *out = rest;
  return STATUS_OK;
}

void rest_stop(struct rest *rest) {
  if (!rest) return;
  MHD_stop_daemon(rest->daemon);
  free(rest);
}
