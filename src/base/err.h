/* Errors are values: a function that can fail returns a status and fills a struct err with one line for a person,
 * which says what happened, where, and where possible how to mend it. Nothing below src/cli prints or exits. */
#ifndef MUSTER_BASE_ERR_H
#define MUSTER_BASE_ERR_H

enum status {
  STATUS_OK = 0,
  STATUS_USAGE,       /* the caller asked for something impossible: exit code 2 */
  STATUS_UNREACHABLE, /* nothing answers at the target, or it refuses us: exit code 4 */
  STATUS_IO,          /* the operating system said no */
  STATUS_PROTOCOL,    /* the peer broke the protocol */
  STATUS_TIMEOUT,     /* a deadline passed */
  STATUS_MEMORY,      /* out of memory or over a stated budget */
  STATUS_INTERRUPTED, /* the user asked to stop */
};

struct err {
  enum status status;
  char text[512]; /* one line, no newline at its end */
};

/* Fills *err (which may be NULL) and returns status, so that a caller can `return err_set(...)`. Control characters, as
 * names of files and words of servers may hold, become '?'. */
enum status err_set(struct err *err, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of a message on its way up; returns err->status. */
enum status err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
