/* A dialogue: one connection to the target that a driver's prepare and release use by themselves, before and after the
 * workers. It blocks, but only until the run's set-up deadline or an interruption, and 30 s for the first byte. */
#ifndef MUSTER_DRIVER_DIALOGUE_H
#define MUSTER_DRIVER_DIALOGUE_H

#include "driver/driver.h"
#include "net/loop.h"

struct dialogue {
  struct stream stream; /* first */
  struct loop *loop;    /* owned */
  struct driver_run *run;
  void *context;
  void (*ready)(struct dialogue *dialogue); /* the stream is open: again, when TLS was started; may be NULL */
  /* As stream_ops.received; ends the wait with dialogue_done or dialogue_fail. */
  size_t (*received)(struct dialogue *dialogue, uint8_t *data, size_t len);
  uint64_t deadline_ns;
  struct err *err;
  bool opened, heard, done;
  enum status status; /* of what ended the wait */
};

/* Connects to run->address, with run->tls at once unless the driver starts it itself; STATUS_OK when the stream is
 * open. The caller has set received, and ready and context where it uses them: a server may speak first. deadline_ns is
 * absolute. When it fails, nothing needs to be closed. */
enum status dialogue_open(struct dialogue *dialogue, struct driver_run *run, uint64_t deadline_ns, struct err *err);

/* Lets things come until received has called one of the two below, which it may have done already; fills err when it
 * was not dialogue_done. A dialogue that was ended by dialogue_done goes on with dialogue_again. */
enum status dialogue_wait(struct dialogue *dialogue, struct err *err);
void dialogue_again(struct dialogue *dialogue);
void dialogue_done(struct dialogue *dialogue);
void dialogue_fail(struct dialogue *dialogue, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void dialogue_close(struct dialogue *dialogue);

#endif
