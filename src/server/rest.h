/* A small HTTP service on libmicrohttpd: a pool of threads, whole bodies of bounded size, JSON answers in JuggleIM's
 * envelope (section 6.2). Handlers run on the pool's threads and may block. */
#ifndef MUSTER_SERVER_REST_H
#define MUSTER_SERVER_REST_H

#include "base/err.h"
#include "base/view.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define REST_BODY_MAX (8u * 1024 * 1024)

struct MHD_Connection;

struct rest_request {
  const char *method, *path;
  struct view body;
  struct MHD_Connection *connection;
};

/* What a handler fills in. */
struct rest_answer {
  int32_t code;         /* 0: success */
  const char *msg;      /* static; NULL: the text of the code */
  json_t *data;         /* owned by the answer; NULL: null */
  const char *text;     /* static; when set it is the whole body instead of the envelope */
  char *page;           /* owned by the answer: likewise */
  const char *type;     /* static: of text and page; NULL: JSON */
  unsigned http_status; /* 0: as section 6.2 says for the code */
};

struct rest_config {
  const char *name;              /* for error texts: "HTTP API" */
  const char *request_id_prefix; /* "api_" */
  const char *host;
  uint16_t port; /* 0: a free one */
  uint32_t threads;
  bool cors; /* Access-Control-Allow-Origin: * and an answer to OPTIONS */
  /* Called when the head of a request has come; a code here is the answer, and the body is thrown away. */
  int32_t (*authorize)(void *context, const struct rest_request *request, struct rest_answer *answer);
  void (*handle)(void *context, const struct rest_request *request, struct rest_answer *answer);
  void *context;
};

struct rest;

/* On OK *port holds what was bound. */
enum status rest_start(struct rest **out, const struct rest_config *config, uint16_t *port, struct err *err);
/* Finishes the requests that run and ends the threads; harmless on NULL. */
void rest_stop(struct rest *rest);

/* A request's header or query argument; NULL when it is absent or empty. Valid during the request. */
const char *rest_header(const struct rest_request *request, const char *name);
const char *rest_query(const struct rest_request *request, const char *name);

/* True when both texts are equal; takes the same time wherever they differ. */
bool rest_secret_equal(const char *a, const char *b);

#endif
