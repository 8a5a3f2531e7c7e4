/* HTTP heads, good and bad and cut at every byte; the WebSocket upgrade; addresses. */
#include "net/address.h"
#include "net/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum http_result reader(const uint8_t *, size_t, struct http_head *, size_t *, struct err *);

/* Reads from an exact copy, so that a sanitizer sees each byte read too far. */
static enum http_result read_copy(reader *read, const char *text, size_t len, struct err *err) {
  uint8_t *copy = malloc(len + !len);
  assert_non_null(copy);
  memcpy(copy, text, len);
  struct http_head head;
  size_t used = 0;
  enum http_result result = read(copy, len, &head, &used, err);
  if (result == HTTP_COMPLETE) assert_true(used <= len);
  free(copy);
  return result;
}

static void check_bad(reader *read, const char *text, size_t len, const char *why) {
  struct err err = {0};
  if (read_copy(read, text, len, &err) != HTTP_BAD) fail_msg("taken for good: %s", text);
  if (!strstr(err.text, why)) fail_msg("\"%s\" does not tell \"%s\"", err.text, why);
  for (size_t i = 0; i < len; i++) {
    if (read_copy(read, text, i, &err) == HTTP_COMPLETE) fail_msg("%zu bytes taken for complete: %s", i, text);
  }
}

#define BAD_REQUEST(text, why) check_bad(http_read_request, text, sizeof(text) - 1, why)
#define BAD_RESPONSE(text, why) check_bad(http_read_response, text, sizeof(text) - 1, why)

static void test_request(void **state) {
  (void)state;
  static const char text[] = "GET /chat?x=1 HTTP/1.1\r\nHost: example.com:80\r\nX-Empty:\r\nX-Blank: \t a b \t\r\n"
                             "Connection: keep-alive, \tUpgrade\r\nconnection: x\r\n\r\nrest";
  size_t head_len = sizeof text - 1 - 4;
  struct http_head head;
  size_t used = 0;
  struct err err;
  for (size_t i = 0; i < head_len; i++) {
    assert_int_equal(read_copy(http_read_request, text, i, &err), HTTP_PARTIAL);
  }
  assert_int_equal(http_read_request((const uint8_t *)text, sizeof text - 1, &head, &used, &err), HTTP_COMPLETE);
  assert_int_equal(used, head_len);
  assert_true(view_is(head.method, "GET"));
  assert_true(view_is(head.target, "/chat?x=1"));
  assert_int_equal(head.minor_version, 1);
  assert_int_equal(head.count, 5);
  assert_true(view_is(http_field(&head, "hOST"), "example.com:80"));
  assert_true(view_is(http_field(&head, "X-Blank"), "a b"));
  assert_int_equal(http_field(&head, "X-Empty").len, 0);
  assert_non_null(http_field(&head, "X-Empty").data);
  assert_null(http_field(&head, "X-Absent").data);
  assert_true(http_has_token(&head, "Connection", "upgrade"));
  assert_true(http_has_token(&head, "Connection", "KEEP-ALIVE"));
  assert_true(http_has_token(&head, "Connection", "X"));
  assert_false(http_has_token(&head, "Connection", "keep"));
  assert_false(http_has_token(&head, "X-Empty", ""));
}

static void test_response(void **state) {
  (void)state;
  struct http_head head;
  size_t used;
  struct err err;
  static const char full[] = "HTTP/1.0 404 Not Found\r\nContent-Length: 12\r\n\r\n";
  for (size_t i = 0; i < sizeof full - 1; i++) {
    assert_int_equal(read_copy(http_read_response, full, i, &err), HTTP_PARTIAL);
  }
  assert_int_equal(http_read_response((const uint8_t *)full, sizeof full - 1, &head, &used, &err), HTTP_COMPLETE);
  assert_int_equal(head.status, 404);
  assert_int_equal(head.minor_version, 0);
  assert_true(view_is(head.reason, "Not Found"));
  assert_int_equal(http_content_length(&head), 12);
  assert_int_equal(read_copy(http_read_response, "HTTP/1.1 200\r\n\r\n", 16, &err), HTTP_COMPLETE);
  assert_int_equal(read_copy(http_read_response, "HTTP/1.1 200 \r\n\r\n", 17, &err), HTTP_COMPLETE);
}

static void test_bad_heads(void **state) {
  (void)state;
  BAD_REQUEST("\r\n", "method");
  BAD_REQUEST("GET\r\n\r\n", "method");
  BAD_REQUEST(" GET / HTTP/1.1\r\n\r\n", "method");
  BAD_REQUEST("G(T / HTTP/1.1\r\n\r\n", "method");
  BAD_REQUEST("GET  / HTTP/1.1\r\n\r\n", "target");
  BAD_REQUEST("GET /\x80 HTTP/1.1\r\n\r\n", "target");
  BAD_REQUEST("GET / HTTP/1.2\r\n\r\n", "version");
  BAD_REQUEST("GET / HTTP/2.0\r\n\r\n", "version");
  BAD_REQUEST("GET / http/1.1\r\n\r\n", "version");
  BAD_REQUEST("GET / HTTP/1.1 \r\n\r\n", "version");
  BAD_REQUEST("GET / \r\n\r\n", "version");
  BAD_REQUEST("GET / HTTP/1.1\n\n", "CRLF");
  BAD_REQUEST("GET / HTTP/1.1\r\nA: b\n\r\n", "CRLF");
  BAD_REQUEST("GET / HTTP/1.1\r\nA: b\r\r\n\r\n", "control");
  BAD_REQUEST("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", "control");
  BAD_REQUEST("GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n", "control");
  BAD_REQUEST("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "folded");
  BAD_REQUEST("GET / HTTP/1.1\r\nA : b\r\n\r\n", "name");
  BAD_REQUEST("GET / HTTP/1.1\r\n: b\r\n\r\n", "name");
  BAD_REQUEST("GET / HTTP/1.1\r\nno colon\r\n\r\n", "colon");
  BAD_RESPONSE("HTTP/1.1 99 Low\r\n\r\n", "digits");
  BAD_RESPONSE("HTTP/1.1 099 Low\r\n\r\n", "below 100");
  BAD_RESPONSE("HTTP/1.1 2000 High\r\n\r\n", "digits");
  BAD_RESPONSE("HTTP/1.1  200 OK\r\n\r\n", "digits");
  BAD_RESPONSE("HTTP/1.1\r\n\r\n", "HTTP/1.1");
  BAD_RESPONSE("SSH-2.0-x y\r\n\r\n", "HTTP/1.1");
  BAD_RESPONSE("HTTP/1.1 200 O\x01K\r\n\r\n", "control");
}

static size_t fill_fields(char *out, int count) {
  size_t at = (size_t)sprintf(out, "GET / HTTP/1.1\r\n");
  for (int i = 0; i < count; i++)
    at += (size_t)sprintf(out + at, "A%d: x\r\n", i);
  return at + (size_t)sprintf(out + at, "\r\n");
}

static void test_limits(void **state) {
  (void)state;
  static char text[HTTP_HEAD_MAX + 100];
  struct err err;
  assert_int_equal(read_copy(http_read_request, text, fill_fields(text, 64), &err), HTTP_COMPLETE);
  assert_int_equal(read_copy(http_read_request, text, fill_fields(text, 65), &err), HTTP_BAD);
  size_t at = (size_t)sprintf(text, "GET / HTTP/1.1\r\nA: ");
  memset(text + at, 'x', sizeof text - at);
  assert_int_equal(read_copy(http_read_request, text, HTTP_HEAD_MAX - 1, &err), HTTP_PARTIAL);
  assert_int_equal(read_copy(http_read_request, text, HTTP_HEAD_MAX, &err), HTTP_BAD);
  memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
  assert_int_equal(read_copy(http_read_request, text, HTTP_HEAD_MAX, &err), HTTP_COMPLETE);
  assert_int_equal(read_copy(http_read_request, text, HTTP_HEAD_MAX + 50, &err), HTTP_COMPLETE);
}

static int64_t content_length(const char *fields) {
  char text[256];
  struct http_head head;
  size_t used;
  struct err err;
  int len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", fields);
  assert_int_equal(http_read_response((const uint8_t *)text, (size_t)len, &head, &used, &err), HTTP_COMPLETE);
  return http_content_length(&head);
}

static void test_content_length(void **state) {
  (void)state;
  assert_int_equal(content_length(""), -1);
  assert_int_equal(content_length("Content-Length: 0\r\n"), 0);
  assert_int_equal(content_length("content-length: 999999999999999999\r\n"), 999999999999999999);
  assert_int_equal(content_length("content-length: 9999999999999999999\r\n"), -2);
  assert_int_equal(content_length("Content-Length: 5\r\nContent-Length: 5\r\n"), 5);
  assert_int_equal(content_length("Content-Length: 5\r\nContent-Length: 6\r\n"), -2);
  assert_int_equal(content_length("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), -2);
  assert_int_equal(content_length("Content-Length: -5\r\n"), -2);
  assert_int_equal(content_length("Content-Length: +5\r\n"), -2);
  assert_int_equal(content_length("Content-Length: 5, 5\r\n"), -2);
  assert_int_equal(content_length("Content-Length: 0x5\r\n"), -2);
  assert_int_equal(content_length("Content-Length:\r\n"), -2);
}

#define SAMPLE_KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define SAMPLE_ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void test_accept_value(void **state) {
  (void)state;
  char accept[29];
  ws_accept_value(SAMPLE_KEY, 24, accept);
  assert_string_equal(accept, SAMPLE_ACCEPT);
}

static enum status check_response(const char *text, const char *key, struct err *err) {
  struct http_head head;
  size_t used;
  assert_int_equal(http_read_response((const uint8_t *)text, strlen(text), &head, &used, err), HTTP_COMPLETE);
  return ws_check_response(&head, key, err);
}

static void test_upgrade_both_ways(void **state) {
  (void)state;
  char key[25];
  char other_key[25];
  ws_make_key(key);
  ws_make_key(other_key);
  assert_int_equal(strlen(key), 24);
  assert_string_not_equal(key, other_key);
  char request[512];
  size_t len = ws_write_request(request, sizeof request, "::1", 9003, "", key, "Origin: http://x\r\n");
  assert_true(len > 0);
  assert_non_null(strstr(request, "GET / HTTP/1.1\r\n"));
  assert_non_null(strstr(request, "\r\nHost: [::1]:9003\r\n"));
  struct http_head head;
  size_t used;
  struct err err;
  assert_int_equal(http_read_request((const uint8_t *)request, len, &head, &used, &err), HTTP_COMPLETE);
  assert_int_equal(used, len);
  assert_true(view_is(http_field(&head, "origin"), "http://x"));
  char answer[257];
  size_t answer_len;
  assert_int_equal(ws_answer_request(&head, answer, 256, &answer_len, &err), STATUS_OK);
  answer[answer_len] = 0;
  assert_int_equal(check_response(answer, key, &err), STATUS_OK);
  assert_int_equal(check_response(answer, other_key, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "Sec-WebSocket-Accept"));
  assert_int_equal(
      ws_answer_request_with(&head, "Sec-WebSocket-Protocol: x\r\n", answer, 256, &answer_len, &err), STATUS_OK);
  answer[answer_len] = 0;
  assert_int_equal(check_response(answer, key, &err), STATUS_OK);
  assert_non_null(strstr(answer, "\r\nSec-WebSocket-Protocol: x\r\n\r\n"));
}

static void test_request_refuses_injection(void **state) {
  (void)state;
  char out[512];
  assert_int_equal(ws_write_request(out, sizeof out, "host", 1, "/a b", SAMPLE_KEY, NULL), 0);
  assert_int_equal(ws_write_request(out, sizeof out, "host", 1, "/a\r\nX: y", SAMPLE_KEY, NULL), 0);
  assert_int_equal(ws_write_request(out, sizeof out, "ho\nst", 1, "/", SAMPLE_KEY, NULL), 0);
  size_t len = ws_write_request(out, sizeof out, "host", 0, "/", SAMPLE_KEY, NULL);
  assert_true(len > 0);
  assert_int_equal(ws_write_request(out, len, "host", 0, "/", SAMPLE_KEY, NULL), 0);
  assert_int_equal(ws_write_request(out, len + 1, "host", 0, "/", SAMPLE_KEY, NULL), len);
}

#define ANSWER(connection, upgrade, accept)                                                                            \
  "HTTP/1.1 101 Switching Protocols\r\n" connection upgrade "Sec-WebSocket-Accept: " accept "\r\n"

static void test_check_response(void **state) {
  (void)state;
  struct err err;
  assert_int_equal(check_response(ANSWER("Connection: upgrade\r\n", "Upgrade: WebSocket\r\n", SAMPLE_ACCEPT) "\r\n",
                       SAMPLE_KEY, &err),
      STATUS_OK);
  assert_int_equal(
      check_response(ANSWER("", "Upgrade: websocket\r\n", SAMPLE_ACCEPT) "\r\n", SAMPLE_KEY, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "Connection"));
  assert_int_equal(
      check_response(ANSWER("Connection: Upgrade\r\n", "", SAMPLE_ACCEPT) "\r\n", SAMPLE_KEY, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "Upgrade: websocket"));
  assert_int_equal(check_response(ANSWER("Connection: Upgrade\r\n", "Upgrade: websocket\r\n",
                                      SAMPLE_ACCEPT) "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
                       SAMPLE_KEY, &err),
      STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "Extensions"));
  assert_int_equal(check_response("HTTP/1.1 302 Found\r\nLocation: /else\r\n\r\n", SAMPLE_KEY, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "302 Found"));
  assert_non_null(strstr(err.text, "/else"));
  assert_int_equal(check_response("HTTP/1.1 500\r\n\r\n", SAMPLE_KEY, &err), STATUS_PROTOCOL);
}

static void refused(const char *text, const char *status_line, const char *why) {
  struct http_head head;
  size_t used;
  struct err err;
  char answer[257];
  size_t len;
  assert_int_equal(http_read_request((const uint8_t *)text, strlen(text), &head, &used, &err), HTTP_COMPLETE);
  assert_int_equal(ws_answer_request(&head, answer, 256, &len, &err), STATUS_PROTOCOL);
  answer[len] = 0;
  assert_memory_equal(answer, status_line, strlen(status_line));
  if (!strstr(err.text, why)) fail_msg("\"%s\" does not tell \"%s\"", err.text, why);
  assert_int_equal(http_read_response((const uint8_t *)answer, len, &head, &used, &err), HTTP_COMPLETE);
  assert_int_equal(used, len);
}

#define FIELDS "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define KEY_FIELD "Sec-WebSocket-Key: " SAMPLE_KEY "\r\n"

static void test_answer_request(void **state) {
  (void)state;
  refused("POST / HTTP/1.1\r\nHost: a\r\n" FIELDS KEY_FIELD "\r\n", "HTTP/1.1 400 ", "GET");
  refused("GET / HTTP/1.0\r\nHost: a\r\n" FIELDS KEY_FIELD "\r\n", "HTTP/1.1 400 ", "HTTP/1.1");
  refused("GET / HTTP/1.1\r\n" FIELDS KEY_FIELD "\r\n", "HTTP/1.1 400 ", "Host");
  refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n" FIELDS KEY_FIELD "\r\n", "HTTP/1.1 400 ", "Host");
  refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 426 ", "no WebSocket");
  refused("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 400 ", "Connection");
  refused(
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n" KEY_FIELD
      "\r\n",
      "HTTP/1.1 426 ", "Version");
  refused("GET / HTTP/1.1\r\nHost: a\r\n" FIELDS "\r\n", "HTTP/1.1 400 ", "Key");
  refused("GET / HTTP/1.1\r\nHost: a\r\n" FIELDS KEY_FIELD KEY_FIELD "\r\n", "HTTP/1.1 400 ", "Key");
  refused("GET / HTTP/1.1\r\nHost: a\r\n" FIELDS "Sec-WebSocket-Key: short\r\n\r\n", "HTTP/1.1 400 ", "Key");
  refused("GET / HTTP/1.1\r\nHost: a\r\n" FIELDS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\n\r\n", "HTTP/1.1 400 ",
      "Key");
}

static void test_urls(void **state) {
  (void)state;
  static const struct {
    const char *text, *scheme, *host;
    uint16_t port;
    const char *path;
  } good[] = {
      {"ws://localhost:9003/im?x=1#frag", "ws", "localhost", 9003, "/im?x=1"},
      {"WSS://Example.com", "wss", "Example.com", 0, ""},
      {"http://[::1]:80/", "http", "::1", 80, "/"},
      {"http://[fe80::1%eth0]", "http", "fe80::1%eth0", 0, ""},
      {"10.0.0.1:9003", "", "10.0.0.1", 9003, ""},
      {"host", "", "host", 0, ""},
      {"ws://h?q", "ws", "h", 0, "/?q"},
      {"host:1/a://b", "", "host", 1, "/a://b"},
  };
  struct url url;
  struct err err;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    if (url_parse(good[i].text, &url, &err) != STATUS_OK) fail_msg("%s: %s", good[i].text, err.text);
    assert_string_equal(url.scheme, good[i].scheme);
    assert_string_equal(url.host, good[i].host);
    assert_int_equal(url.port, good[i].port);
    assert_string_equal(url.path, good[i].path);
  }
  static const char *const bad[] = {"", "ws://", "ws://:80", "://host", "w s://host", "ws://host:0", "ws://host:65536",
      "ws://host:8a", "ws://host:", "ws://[::1", "ws://[::1]x", "ws://::1", "ws://ho st", "ws://h/a b",
      "averyveryverylongscheme://h"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err.text[0] = 0;
    if (url_parse(bad[i], &url, &err) != STATUS_USAGE) fail_msg("taken for good: %s", bad[i]);
    if (!strstr(err.text, bad[i])) fail_msg("%s does not quote %s", err.text, bad[i]);
  }
  assert_int_equal(url_parse("ws://user:word@host", &url, &err), STATUS_USAGE);
  assert_null(strstr(err.text, "word@")); /* a password goes into no log */
  assert_int_equal(url_parse("ws://h/\n", &url, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "ws://h/?")); /* an error is one line */
  char longest[700] = "ws://";
  memset(longest + 5, 'h', 256);
  assert_int_equal(url_parse(longest, &url, &err), STATUS_USAGE);
  longest[5 + 255] = 0;
  assert_int_equal(url_parse(longest, &url, &err), STATUS_OK);
  strcpy(longest, "ws://h/");
  memset(longest + 7, 'p', 600);
  assert_int_equal(url_parse(longest, &url, &err), STATUS_USAGE);
}

static void test_addresses(void **state) {
  (void)state;
  static const struct {
    const char *host, *text;
    bool loopback;
  } known[] = {
      {"127.0.0.1", "127.0.0.1:9003", true},
      {"127.8.9.1", "127.8.9.1:9003", true},
      {"::1", "[::1]:9003", true},
      {"::ffff:127.0.0.1", "[::ffff:127.0.0.1]:9003", true},
      {"192.0.2.1", "192.0.2.1:9003", false},
      {"2001:db8::1", "[2001:db8::1]:9003", false},
  };
  struct err err;
  struct address address;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char text[64];
    assert_int_equal(address_resolve(known[i].host, 9003, &address, &err), STATUS_OK);
    address_text(&address, text, sizeof text);
    assert_string_equal(text, known[i].text);
    assert_int_equal(address_is_loopback(&address), known[i].loopback);
  }
  assert_int_equal(address_resolve("no such host", 1, &address, &err), STATUS_UNREACHABLE);
  assert_non_null(strstr(err.text, "no such host"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_request),
      cmocka_unit_test(test_response),
      cmocka_unit_test(test_bad_heads),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_content_length),
      cmocka_unit_test(test_accept_value),
      cmocka_unit_test(test_upgrade_both_ways),
      cmocka_unit_test(test_request_refuses_injection),
      cmocka_unit_test(test_check_response),
      cmocka_unit_test(test_answer_request),
      cmocka_unit_test(test_urls),
      cmocka_unit_test(test_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
