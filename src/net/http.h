/* HTTP/1.1 heads and the WebSocket upgrade (RFC 9110, 9112, RFC 6455 section 4), bytes to structs, no I/O.
 * Strict: a head is at most HTTP_HEAD_MAX bytes and HTTP_FIELDS_MAX fields; obsolete folding, bare CR and NUL are
 * refused. */
#ifndef MUSTER_NET_HTTP_H
#define MUSTER_NET_HTTP_H

#include "base/err.h"
#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 16384
#define HTTP_FIELDS_MAX 64

struct http_field {
  struct view name, value; /* value without surrounding blanks */
};

struct http_head {
  struct view method, target; /* of a request */
  int status;                 /* of a response */
  struct view reason;
  int minor_version; /* 0 or 1 */
  uint32_t count;
  struct http_field field[HTTP_FIELDS_MAX];
};

enum http_result { HTTP_COMPLETE, HTTP_PARTIAL, HTTP_BAD };

/* Reads one head from data; on COMPLETE *used is its length with the blank line, and the views point into data.
 * On BAD the error says what is wrong (for a person). */
enum http_result http_read_request(
    const uint8_t *data, size_t len, struct http_head *out, size_t *used, struct err *err);
enum http_result http_read_response(
    const uint8_t *data, size_t len, struct http_head *out, size_t *used, struct err *err);

/* First field of that name (ASCII case ignored); {NULL, 0} when absent. */
struct view http_field(const struct http_head *head, const char *name);
/* True when a comma-separated field has the token (ASCII case ignored), in any of its lines. */
bool http_has_token(const struct http_head *head, const char *name, const char *token);
/* Content-Length; -1 when absent, -2 when it is malformed or contradictory. */
int64_t http_content_length(const struct http_head *head);

/* WebSocket upgrade. Keys are 24 characters of base64 and accept values 28, NUL-terminated. */
void ws_make_key(char key[25]);
void ws_accept_value(const char *key, size_t key_len, char accept[29]);
/* Writes the client's request into out; returns its length, or 0 when it does not fit. extra: further whole header
 * lines ending in CRLF, or NULL. */
size_t ws_write_request(
    char *out, size_t size, const char *host, uint16_t port, const char *path, const char *key, const char *extra);
/* Checks a server's answer against the key; the error says what came instead of 101 (status, or which field). */
enum status ws_check_response(const struct http_head *head, const char *key, struct err *err);
/* Checks a client's request and writes the 101 answer into out (at least 256 bytes), its length into *len. When the
 * request is no valid upgrade, returns STATUS_PROTOCOL and writes the error answer (400 or 426) instead. */
enum status ws_answer_request(const struct http_head *head, char *out, size_t size, size_t *len, struct err *err);
/* The same with further whole header lines in the 101, each ending in CRLF, which out must have room for as well. */
enum status ws_answer_request_with(
    const struct http_head *head, const char *extra, char *out, size_t size, size_t *len, struct err *err);

#endif
