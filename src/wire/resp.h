/* RESP, the protocol of Redis, versions 2 and 3. A value is first measured, which checks all of it; its parts are then
 * read one after the other, in place and in the order of the wire. Streamed strings and aggregates of RESP3, which no
 * server sends unasked, are refused. */
#ifndef MUSTER_WIRE_RESP_H
#define MUSTER_WIRE_RESP_H

#include "base/view.h"

#include <stdint.h>

#define RESP_DEPTH_MAX 8
#define RESP_ELEMENTS_MAX 65536 /* of one value, everything in it counted */
#define RESP_LINE_MAX 16384

enum resp_result {
  RESP_COMPLETE,
  RESP_PARTIAL, /* more bytes are needed */
  RESP_BAD,     /* no RESP, or over a limit */
};

/* The length of the value at data goes to *size; strings of more than bulk_max bytes are bad. Attributes belong to the
 * value behind them. */
enum resp_result resp_measure(const uint8_t *data, size_t len, uint32_t bulk_max, size_t *size);

enum resp_type {
  RESP_STRING,  /* simple, bulk or verbatim (without its format): text */
  RESP_ERROR,   /* simple or bulk: text */
  RESP_INTEGER, /* number */
  RESP_OTHER,   /* double or big number: text */
  RESP_BOOLEAN, /* number: 0 or 1 */
  RESP_NULL,
  RESP_ARRAY, /* array or set: number of elements behind it */
  RESP_MAP,   /* number of elements behind it, keys and values both counted */
  RESP_PUSH,  /* number of elements behind it */
};

struct resp_value {
  enum resp_type type;
  struct view text;
  int64_t number;
};

/* Reads the next part of a value that was measured, and leaves attributes out; false at its end. */
bool resp_next(struct view *rest, struct resp_value *out);
/* Passes over the next part with everything in it. */
void resp_skip(struct view *rest);

/* Writing commands: an array's head, then each argument as a bulk string. Sizes are upper bounds. */
#define RESP_HEAD_MAX 24
static inline size_t resp_bulk_size(size_t len) {
  return RESP_HEAD_MAX + len + 2;
}
uint8_t *resp_write_array(uint8_t *out, uint32_t count);
/* The head of a bulk string, whose len bytes and "\r\n" the caller writes (resp_end). */
uint8_t *resp_write_bulk_head(uint8_t *out, size_t len);
uint8_t *resp_end(uint8_t *out);
uint8_t *resp_write_bulk(uint8_t *out, struct view text);

/* Errors begin with a word that names their kind; it has no number, so these are muster's. */
enum resp_error {
  RESP_ERROR_OTHER = 1,
  RESP_ERROR_ERR,
  RESP_ERROR_WRONGPASS,
  RESP_ERROR_NOAUTH,
  RESP_ERROR_NOPERM,
  RESP_ERROR_NOPROTO,
  RESP_ERROR_OOM,
  RESP_ERROR_LOADING,
  RESP_ERROR_BUSY,
  RESP_ERROR_READONLY,
  RESP_ERROR_MASTERDOWN,
  RESP_ERROR_NOREPLICAS,
  RESP_ERROR_MISCONF,
  RESP_ERROR_MOVED,
  RESP_ERROR_ASK,
  RESP_ERROR_CLUSTERDOWN,
  RESP_ERROR_TRYAGAIN,
  RESP_ERROR_WRONGTYPE,
  RESP_ERROR_MAXCLIENTS, /* ERR max number of clients reached */
};

enum resp_error resp_error_of(struct view text);
const char *resp_error_text(int32_t error);

#endif
