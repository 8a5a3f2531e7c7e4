// room: net
// Heads of both kinds, the upgrade on top of them, and URLs; a head that is complete must be partial when cut.
#include "net/address.h"
#include "net/http.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_views(const struct http_head *head, const uint8_t *data, size_t used) {
  for (uint32_t i = 0; i < head->count; i++) {
    const struct http_field *field = &head->field[i];
    if (field->name.data < data || field->value.data + field->value.len > data + used) abort();
    if (memchr(field->value.data, '\n', field->value.len) || memchr(field->value.data, 0, field->value.len)) abort();
  }
}

static void look_at_request(const uint8_t *data, size_t size) {
  struct http_head head;
  struct err err;
  size_t used;
  if (http_read_request(data, size, &head, &used, &err) != HTTP_COMPLETE) return;
  if (used > size || used > HTTP_HEAD_MAX) abort();
  check_views(&head, data, used);
  if (http_content_length(&head) < -2) abort();
  char answer[256];
  size_t len;
  ws_answer_request(&head, answer, sizeof answer, &len, &err);
  if (len == 0 || len >= sizeof answer) abort();
  if (http_read_response((const uint8_t *)answer, len, &head, &used, &err) != HTTP_COMPLETE || used != len) abort();
  size_t whole = 0;
  if (http_read_request(data, size, &head, &whole, &err) != HTTP_COMPLETE) abort();
  if (http_read_request(data, whole - 1, &head, &used, &err) != HTTP_PARTIAL) abort();
}

static void look_at_response(const uint8_t *data, size_t size) {
  struct http_head head;
  struct err err;
  size_t used;
  if (http_read_response(data, size, &head, &used, &err) != HTTP_COMPLETE) return;
  if (used > size || used > HTTP_HEAD_MAX) abort();
  check_views(&head, data, used);
  if (http_content_length(&head) < -2) abort();
  ws_check_response(&head, "dGhlIHNhbXBsZSBub25jZQ==", &err);
}

static void look_at_url(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, data, size);
  text[size] = 0;
  struct url url;
  struct err err;
  if (url_parse(text, &url, &err) == STATUS_OK) {
    char request[2048];
    if (!ws_write_request(request, sizeof request, url.host, url.port, url.path, "key", NULL)) {
      /* A host beyond ASCII is left to the resolver; no request is written for it. */
      bool ascii = true;
      for (const char *c = url.host; *c; c++)
        ascii = ascii && (unsigned char)*c < 0x7f;
      if (ascii) abort();
    }
  }
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size + !size);
  if (!copy) abort();
  memcpy(copy, data, size);
  look_at_request(copy, size);
  look_at_response(copy, size);
  free(copy);
  look_at_url(data, size);
  return 0;
}
