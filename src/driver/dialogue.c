#include "driver/dialogue.h"

#include "base/clock.h"
#include "net/tls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TURN_NS (50 * NS_PER_MS)
#define FIRST_WORD_NS (30 * NS_PER_SEC) /* a port that says nothing at all speaks something else */

static struct dialogue *dialogue_of(struct stream *stream) {
  return (struct dialogue *)stream;
}

void dialogue_again(struct dialogue *dialogue) {
  dialogue->done = false;
}

void dialogue_done(struct dialogue *dialogue) {
  dialogue->done = true;
  dialogue->status = STATUS_OK;
}

void dialogue_fail(struct dialogue *dialogue, enum status status, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  dialogue->done = true;
  dialogue->status = err_set(dialogue->err, status, "%s", text);
}

static void on_opened(struct stream *stream) {
  struct dialogue *dialogue = dialogue_of(stream);
  dialogue->opened = true;
  if (dialogue->ready) dialogue->ready(dialogue);
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct dialogue *dialogue = dialogue_of(stream);
  dialogue->heard = true;
  return dialogue->received(dialogue, data, len);
}

static void on_closed(struct stream *stream, enum stream_end end, int error) {
  struct dialogue *dialogue = dialogue_of(stream);
  const char *target = dialogue->run->settings.target;
  if (dialogue->done) return;
  switch (end) {
  case STREAM_END_REFUSED:
    dialogue_fail(
        dialogue, STATUS_UNREACHABLE, "nothing listens at %s: is the server running, and is the port right?", target);
    return;
  case STREAM_END_TLS: {
    const char *why = dialogue->run->tls ? tls_context_failure(dialogue->run->tls) : "";
    dialogue_fail(dialogue, STATUS_UNREACHABLE,
        "%s: the TLS handshake failed%s%s: check the certificate, --ca-file or --insecure, and that the port speaks "
        "TLS",
        target, why[0] ? ": " : "", why);
    return;
  }
  case STREAM_END_CLOSED:
    dialogue_fail(dialogue, STATUS_UNREACHABLE,
        "%s closes the connection before it answers: is it the right port, with TLS or without as it wants?", target);
    return;
  default:
    dialogue_fail(dialogue, STATUS_UNREACHABLE,
        "%s: the connection failed: %s: is it the right port, with TLS or without as it wants?", target,
        strerror(error));
  }
}

static const struct stream_ops ops = {.opened = on_opened, .received = on_received, .closed = on_closed};

static bool interrupted(const struct dialogue *dialogue) {
  const volatile int *flag = dialogue->run->settings.interrupted;
  return flag && *flag;
}

static uint64_t patience_ends_ns(const struct dialogue *dialogue, uint64_t began_ns) {
  uint64_t first_ns = began_ns + FIRST_WORD_NS;
  return dialogue->heard || dialogue->deadline_ns < first_ns ? dialogue->deadline_ns : first_ns;
}

static enum status turn_until(struct dialogue *dialogue, const bool *reached, struct err *err) {
  uint64_t began_ns = clock_now_ns();
  dialogue->err = err;
  while (!*reached && !dialogue->done) {
    uint64_t now_ns = clock_now_ns();
    if (interrupted(dialogue)) return err_set(err, STATUS_INTERRUPTED, "stopped during the set-up");
    uint64_t end_ns = patience_ends_ns(dialogue, began_ns);
    if (now_ns >= end_ns) {
      return err_set(err, STATUS_UNREACHABLE, "%s does not answer in time: is the server alive, and does it speak %s?",
          dialogue->run->settings.target, dialogue->run->driver->name);
    }
    uint64_t until_ns = now_ns + TURN_NS;
    loop_turn(dialogue->loop, until_ns < end_ns ? until_ns : end_ns);
  }
  return dialogue->done ? dialogue->status : STATUS_OK;
}

enum status dialogue_open(struct dialogue *dialogue, struct driver_run *run, uint64_t deadline_ns, struct err *err) {
  dialogue->run = run;
  dialogue->deadline_ns = deadline_ns;
  dialogue->err = err;
  enum status status = loop_create(&dialogue->loop, err);
  if (status != STATUS_OK) return status;
  struct tls_context *tls = run->driver->starts_tls ? NULL : run->tls;
  status = stream_connect(&dialogue->stream, dialogue->loop, &ops, &run->address, NULL, tls, run->server_name, err);
  if (status == STATUS_OK) status = turn_until(dialogue, &dialogue->opened, err);
  if (status == STATUS_OK && !dialogue->opened) status = dialogue->status;
  if (status != STATUS_OK) dialogue_close(dialogue);
  return status;
}

enum status dialogue_wait(struct dialogue *dialogue, struct err *err) {
  return turn_until(dialogue, &dialogue->done, err);
}

void dialogue_close(struct dialogue *dialogue) {
  stream_close(&dialogue->stream, false);
  loop_destroy(dialogue->loop);
  dialogue->loop = NULL;
}
