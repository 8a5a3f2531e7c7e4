/* Ricochet's application protocols: frames of a length and a JSON body, one request and one response on a stream of
 * their own. Requests and responses are written into a buffer, field by field as Go writes them, and read in place;
 * what stands below (libp2p) is net's. */
#ifndef MUSTER_WIRE_RICOCHET_H
#define MUSTER_WIRE_RICOCHET_H

#include "base/buf.h"
#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RICOCHET_FRAME_MAX (10u * 1024 * 1024)
#define RICOCHET_HEAD_BYTES 4
#define RICOCHET_BATCH_MAX 100

enum ricochet_protocol {
  RICOCHET_SUBMIT,
  RICOCHET_SUBMIT_BATCH,
  RICOCHET_ACCESS,
  RICOCHET_ADMIN,
  RICOCHET_DOCUMENT,
  RICOCHET_FEED,
  RICOCHET_COLLECTION,
  RICOCHET_NOTIFY, /* the server's to the client */
  RICOCHET_PROTOCOLS
};
/* "/sf-network/submit/1.0.0" ... */
const char *ricochet_protocol_id(enum ricochet_protocol protocol);

enum ricochet_status {
  RICOCHET_OK = 200,
  RICOCHET_CREATED = 201,
  RICOCHET_DELETED = 204,
  RICOCHET_NOT_MODIFIED = 304,
  RICOCHET_BAD_REQUEST = 400,
  RICOCHET_FORBIDDEN = 403,
  RICOCHET_NOT_FOUND = 404,
  RICOCHET_CONFLICT = 409,
  RICOCHET_TOO_LARGE = 413,
  RICOCHET_RATE_LIMITED = 429,
  RICOCHET_INTERNAL = 500,
  RICOCHET_OVERLOADED = 503,
  RICOCHET_FULL = 507,
};
/* A short name ("mailbox_full"), or NULL for a number that Ricochet does not use. */
const char *ricochet_status_name(int32_t status);
/* Only these two may be tried again, after the hint. */
static inline bool ricochet_is_retryable(int32_t status) {
  return status == RICOCHET_RATE_LIMITED || status == RICOCHET_OVERLOADED;
}

/* --- frames --- */

enum ricochet_frame { RICOCHET_FRAME_OK, RICOCHET_FRAME_PARTIAL, RICOCHET_FRAME_BAD };
/* *used: bytes of the whole frame. */
enum ricochet_frame ricochet_read_frame(struct view bytes, struct view *body, size_t *used);

/* A writer of one frame at the end of a buffer. When memory is out or the frame too long it writes no more, and
 * ricochet_end says so. */
struct ricochet_writer {
  struct buf *out; /* not owned */
  size_t start;    /* of the frame */
  bool failed, comma;
};
struct ricochet_writer ricochet_begin(struct buf *out);
/* Puts the length in front. False, with the buffer as it was, when memory was out or the frame is too long. */
bool ricochet_end(struct ricochet_writer *w);

void ricochet_raw(struct ricochet_writer *w, struct view text);
void ricochet_open(struct ricochet_writer *w, const char *key, char bracket); /* key NULL: an element, or the whole */
void ricochet_close(struct ricochet_writer *w, char bracket);
void ricochet_put_text(struct ricochet_writer *w, const char *key, struct view text);
void ricochet_put_int(struct ricochet_writer *w, const char *key, int64_t value);
void ricochet_put_bool(struct ricochet_writer *w, const char *key, bool value);
void ricochet_put_base64(struct ricochet_writer *w, const char *key, struct view bytes);
void ricochet_put_json(struct ricochet_writer *w, const char *key, struct view json); /* as it is */
/* A frame within the frame: its length comes when it ends. */
size_t ricochet_begin_part(struct ricochet_writer *w);
void ricochet_end_part(struct ricochet_writer *w, size_t part);

/* --- requests --- */

struct ricochet_message {
  struct view message_id, recipient, sender, folder;
  uint32_t priority, hop_count, flags, message_flags;
  int64_t expiry_ms, created_ms, sequence; /* sequence 0: none, as in a submission */
  bool persistent;
  struct view payload;
};
/* As an object at the writer's place. */
void ricochet_put_message(struct ricochet_writer *w, const struct ricochet_message *message);

struct ricochet_retrieve {
  struct view owner, folder;
  int64_t from_sequence; /* 0: not said, as are folder and the others when empty */
  uint32_t max_messages;
};
bool ricochet_write_retrieve(struct buf *out, const struct ricochet_retrieve *request);

struct ricochet_admin {
  const char *operation; /* "createMailbox" ... */
  struct view owner, folder;
  const char *type; /* NULL: not said */
};
bool ricochet_write_admin(struct buf *out, const struct ricochet_admin *request);

/* Of documents, feeds and collections; what is empty, 0 or NULL is left out. */
struct ricochet_store_request {
  const char *operation; /* "PUT" ... */
  struct view owner, path, key, if_match, body;
  const char *title, *description, *name, *entry_type;
  struct view cursor; /* of LIST of documents */
  int64_t sequence;
  uint32_t limit;
  bool sort_ascending;
};
bool ricochet_write_request(struct buf *out, const struct ricochet_store_request *request);

/* BATCH_PUT: begin, an item for each document, end with ricochet_close_batch. */
struct ricochet_writer ricochet_open_batch_put(struct buf *out, struct view owner);
void ricochet_put_batch_item(struct ricochet_writer *w, struct view path, struct view body);
struct ricochet_writer ricochet_open_batch_submit(struct buf *out);
bool ricochet_close_batch(struct ricochet_writer *w);

/* --- responses --- */

/* What every response says. Views are of the frame; texts are raw, without their quotes. */
struct ricochet_answer {
  bool success;
  int32_t status;         /* 0: none given */
  int64_t retry_after_ms; /* -1: no hint */
  struct view error;
};

/* Each returns false for what is no such response. */
struct ricochet_ack {
  struct ricochet_answer answer;
  struct view message_id;
};
bool ricochet_read_ack(struct view body, struct ricochet_ack *out);

struct ricochet_batch_ack {
  struct ricochet_answer answer; /* of the first that failed; success when none did */
  uint32_t accepted, total, acks;
};
bool ricochet_read_batch_ack(struct view body, struct ricochet_batch_ack *out);

/* A page of a mailbox, or why there is none. */
struct ricochet_page {
  struct ricochet_answer answer;
  bool has_more;
  uint32_t count;
  struct view messages; /* count parts, each with its length */
};
bool ricochet_read_page(struct view body, struct ricochet_page *out);
/* The next message's JSON text; false at the end or when the rest is no part. */
bool ricochet_next_part(struct view *parts, struct view *part);

/* Of the administration, and of the mailbox operations other than retrieve. */
bool ricochet_read_admin(struct view body, struct ricochet_answer *out);

/* Of documents, feeds and collections. */
struct ricochet_response {
  struct ricochet_answer answer;
  struct view headers; /* raw JSON object, or empty */
  struct view body;    /* base64 text, or empty */
  struct view data;    /* raw JSON, or empty */
};
bool ricochet_read_response(struct view body, struct ricochet_response *out);
/* The value of a header as raw text, without its quotes; empty: not there. */
struct view ricochet_header(struct view headers, const char *name);

/* A member of a raw JSON object, whatever the case of its name; empty: not there, or no object. */
struct view ricochet_member(struct view object, const char *name);
/* Raw text without its quotes; escapes stay. Empty when it is no string. */
struct view ricochet_unquoted(struct view raw);
/* False when the raw value is no whole number. */
bool ricochet_whole(struct view raw, int64_t *out);

#endif
