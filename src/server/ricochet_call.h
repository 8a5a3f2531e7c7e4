/* Within the Ricochet service: one request under way. */
#ifndef MUSTER_SERVER_RICOCHET_CALL_H
#define MUSTER_SERVER_RICOCHET_CALL_H

#include "base/arena.h"
#include "server/ricochet_service.h"

#include <jansson.h>

#define RICOCHET_JSON_DEPTH_MAX 500
#define RICOCHET_JSON_VALUES_MAX 500000
#define RICOCHET_ETAG_BYTES 72 /* "sha256:" and 64 digits, with the NUL */

struct ricochet_call {
  struct ricochet_service *service;
  struct ricochet_store *store;
  enum ricochet_protocol protocol;
  struct view peer;
  int64_t now_ms;
  int32_t status; /* of the response; success unless said otherwise */
  json_t *request;
  struct arena arena; /* of copies and decoded texts */
  struct buf *out;
};

/* --- fields of the request; names match whatever their case --- */
json_t *ricochet_field(const json_t *object, const char *name);
struct view ricochet_text(const json_t *object, const char *name); /* empty: not there */
int64_t ricochet_number(const json_t *object, const char *name, int64_t otherwise);
bool ricochet_truth(const json_t *object, const char *name);
/* Decoded into the arena; false when it is no base64. */
bool ricochet_bytes(struct ricochet_call *call, const json_t *object, const char *name, struct view *out);
/* A header of the request. */
struct view ricochet_request_header(const struct ricochet_call *call, const char *name);
/* A copy that outlives the next call of the store. */
struct view ricochet_keep(struct ricochet_call *call, struct view text);

/* Whether a JSON text is small enough to be parsed: an empty value of few bytes takes a hundred times as many, and
 * SQLite's JSON functions follow no more than RICOCHET_JSON_DEPTH_MAX levels. */
bool ricochet_is_modest(struct view json);
bool ricochet_is_peer_id(struct view text);
bool ricochet_is_path(struct view path);
void ricochet_etag(struct view content, char out[RICOCHET_ETAG_BYTES]);
/* RFC 3339 in UTC. */
void ricochet_time(int64_t ms, char out[40]);

/* --- responses; the frame is written whole --- */

/* In the form of the call's protocol. hint_ms below 0: none. */
void ricochet_refuse(struct ricochet_call *call, int32_t status, const char *text, int64_t hint_ms);
/* An ack as an element of the writer's place. */
void ricochet_put_ack(
    struct ricochet_writer *w, struct view message_id, int32_t status, const char *text, int64_t hint_ms);
/* Of documents, feeds and collections: begin, headers, then the end with a body, with raw data, or with neither. */
struct ricochet_writer ricochet_respond(struct ricochet_call *call, int32_t status);
void ricochet_finish(struct ricochet_call *call, struct ricochet_writer *w);
void ricochet_finish_body(struct ricochet_call *call, struct ricochet_writer *w, struct view body);
void ricochet_finish_data(struct ricochet_call *call, struct ricochet_writer *w, struct view json);

/* --- the protocols --- */
void ricochet_serve_submit(struct ricochet_call *call);
void ricochet_serve_batch(struct ricochet_call *call);
void ricochet_serve_access(struct ricochet_call *call);
void ricochet_serve_admin(struct ricochet_call *call);
void ricochet_serve_document(struct ricochet_call *call);
void ricochet_serve_feed(struct ricochet_call *call);
void ricochet_serve_collection(struct ricochet_call *call);

/* Finds or makes a mailbox; false with a status when a quota forbids it. */
bool ricochet_make_mailbox(
    struct ricochet_call *call, struct view owner, struct view folder, struct ricochet_mailbox *out);
/* Empty means inbox; false when it is no folder's name. */
bool ricochet_folder(struct view *folder);

#endif
