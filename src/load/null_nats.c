/* What the null peer says as a NATS server without JetStream. */
#include "load/null_client.h"

#include "base/put.h"
#include "wire/nats.h"

#include <string.h>

#define INFO                                                                                                           \
  "INFO {\"server_id\":\"null\",\"version\":\"null\",\"proto\":1,\"headers\":true,\"max_payload\":4194304}\r\n"
#define WORDS_MAX 6
#define NUMBER_MAX (4U << 20)

/* The words of a line; what is more than WORDS_MAX stays out. */
static uint32_t split(struct view line, struct view word[WORDS_MAX]) {
  uint32_t count = 0;
  const uint8_t *at = line.data, *end = at + line.len;
  while (count < WORDS_MAX) {
    while (at < end && *at == ' ')
      at++;
    const uint8_t *start = at;
    while (at < end && *at != ' ')
      at++;
    if (at == start) break;
    word[count++] = view_of(start, (size_t)(at - start));
  }
  return count;
}

static bool number(struct view text, uint32_t *out) {
  uint32_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9' || value > NUMBER_MAX) return false;
    value = value * 10 + (text.data[i] - '0');
  }
  *out = value;
  return text.len > 0 && value <= NUMBER_MAX;
}

static bool has_text(struct view in, const char *text) {
  return memmem(in.data, in.len, text, strlen(text)) != NULL;
}

/* SUB subject [queue] sid */
static bool on_subscribe(struct null_client *client, const struct view *word, uint32_t words) {
  struct hub_seat seat = {.client = client, .leaves_out_own = !client->as.nats.hears_itself};
  if (words < 3 || words > 4 || !number(word[words - 1], &seat.id)) return false;
  return hub_join(&client->house->hub, word[1], &seat);
}

/* What is passed on: headers and payload as they came. */
struct message {
  struct view subject, body;
  uint32_t headers_len;
  bool has_headers;
};

/* A recipient that cannot take it misses it, and the run that measures says so. */
static void push(const struct hub_seat *seat, const struct message *message) {
  struct stream *stream = &seat->client->stream;
  uint8_t *out = stream_reserve(stream, message->subject.len + message->body.len + 64);
  if (!out) return;
  uint8_t *at = put_view(out, view_str(message->has_headers ? "HMSG " : "MSG "));
  at = put_text(put_view(at, message->subject), " ");
  at = put_text(put_number(at, seat->id), " ");
  if (message->has_headers) at = put_text(put_number(at, message->headers_len), " ");
  at = put_text(put_number(at, (uint32_t)message->body.len), "\r\n");
  at = nats_end(put_view(at, message->body));
  stream_commit(stream, (size_t)(at - out));
}

static void push_all(struct null_client *client, struct view subject, const struct message *message) {
  const struct hub_topic *topic = hub_find(&client->house->hub, subject);
  for (uint32_t i = 0; topic && i < topic->seats; i++) {
    bool own = topic->seat[i].client == client;
    if (!own || !topic->seat[i].leaves_out_own) push(&topic->seat[i], message);
  }
}

/* To those who subscribed to the subject, and to "*" in the place of its last token; muster asks for no other pattern.
 */
static void fan_out(struct null_client *client, const struct message *message) {
  uint8_t pattern[HUB_TOPIC_MAX];
  struct view subject = message->subject;
  push_all(client, subject, message);
  const uint8_t *dot = memrchr(subject.data, '.', subject.len);
  size_t kept = dot ? (size_t)(dot + 1 - subject.data) : 0;
  if (kept == 0 || kept >= sizeof pattern) return;
  memcpy(pattern, subject.data, kept);
  pattern[kept] = '*';
  push_all(client, view_of(pattern, kept + 1), message);
}

/* PUB subject [reply] size, HPUB subject [reply] headers size; *used gets the bytes behind the line. */
static bool on_publish(
    struct null_client *client, const struct view *word, uint32_t words, struct view rest, size_t *used) {
  struct message message = {.subject = word[1], .has_headers = view_is(word[0], "HPUB")};
  uint32_t size, least = message.has_headers ? 4 : 3;
  if (words < least || words > least + 1 || !number(word[words - 1], &size)) return false;
  if (message.has_headers && (!number(word[words - 2], &message.headers_len) || message.headers_len > size))
    return false;
  if (rest.len < (size_t)size + 2) return true;
  message.body = view_of(rest.data, size);
  *used = (size_t)size + 2;
  fan_out(client, &message);
  return true;
}

/* A line without its end, and what stands behind it. *used: bytes of rest; SIZE_MAX: they are not all there. */
static bool on_line(struct null_client *client, struct view line, struct view rest, size_t *used) {
  struct view word[WORDS_MAX];
  uint32_t words = split(line, word);
  *used = 0;
  if (words == 0) return false;
  if (view_is(word[0], "PUB") || view_is(word[0], "HPUB")) {
    size_t body = 0;
    if (words < 2 || !on_publish(client, word, words, rest, &body)) return false;
    *used = body > 0 ? body : SIZE_MAX;
    return true;
  }
  if (view_is(word[0], "PING")) return stream_write(&client->stream, NATS_PONG_TEXT, sizeof NATS_PONG_TEXT - 1);
  if (view_is(word[0], "SUB")) return on_subscribe(client, word, words);
  if (!view_is(word[0], "CONNECT")) return view_is(word[0], "PONG") || view_is(word[0], "UNSUB");
  client->as.nats.hears_itself = !has_text(line, "\"echo\":false");
  return true;
}

static bool on_bytes(struct null_client *client, uint8_t *data, size_t len, size_t *used) {
  size_t body;
  const uint8_t *end = memchr(data, '\n', len < NATS_LINE_MAX ? len : NATS_LINE_MAX);
  if (!end) return len < NATS_LINE_MAX;
  size_t line_len = (size_t)(end - data), whole = line_len + 1;
  if (line_len > 0 && data[line_len - 1] == '\r') line_len--;
  if (!on_line(client, view_of(data, line_len), view_of(data + whole, len - whole), &body)) return false;
  if (body != SIZE_MAX) *used = whole + body;
  return true;
}

static bool on_opened(struct null_client *client) {
  return stream_write(&client->stream, INFO, sizeof INFO - 1);
}

const struct null_dialect null_nats = {
    .driver = "nats",
    .scheme = "nats",
    .topologies = NULL_PUBSUB_TOPOLOGIES,
    .opened = on_opened,
    .bytes = on_bytes,
};
