/* Documents: written by their owner, read by whom their visibility lets, known by the hash of their bytes. */
#include "server/ricochet_call.h"

#include <stdio.h>

#define DOCUMENT_MAX (10u * 1024 * 1024)
#define BATCH_BYTES_MAX (6u * 1024 * 1024)
#define CONTENT_TYPE_MAX 256
#define LIST_DEFAULT 1000
#define LIST_MAX 5000

static bool is_visibility(struct view text) {
  return view_is(text, "private") || view_is(text, "shared") || view_is(text, "public");
}

/* What one write asks for. */
struct write {
  struct view path, body, content_type, if_match, visibility;
};

/* And what came of it. */
struct written {
  int32_t status;
  const char *error; /* NULL: written */
  char etag[RICOCHET_ETAG_BYTES], actual[RICOCHET_ETAG_BYTES];
};

static void copy_etag(char out[RICOCHET_ETAG_BYTES], struct view etag) {
  snprintf(out, RICOCHET_ETAG_BYTES, "%.*s", (int)etag.len, etag.data ? (const char *)etag.data : "");
}

static const char *check_write(const struct write *write) {
  if (!ricochet_is_path(write->path)) return "invalid path";
  if (write->content_type.len > CONTENT_TYPE_MAX) return "content type too long";
  if (write->visibility.len > 0 && !is_visibility(write->visibility)) return "invalid visibility";
  return NULL;
}

static void put(struct ricochet_call *call, const struct write *write, struct written *out) {
  struct ricochet_document old = {0};
  *out = (struct written){.status = RICOCHET_BAD_REQUEST, .error = check_write(write)};
  if (out->error) return;
  if (write->body.len > DOCUMENT_MAX) {
    *out = (struct written){.status = RICOCHET_TOO_LARGE, .error = "document too large"};
    return;
  }
  bool exists = ricochet_store_document(call->store, call->peer, write->path, &old);
  if (exists && write->if_match.len > 0 && !view_equal(write->if_match, old.hash)) {
    *out = (struct written){.status = RICOCHET_CONFLICT, .error = "etag mismatch"};
    copy_etag(out->actual, old.hash);
    return;
  }
  ricochet_etag(write->body, out->etag);
  struct view kept_visibility = exists ? ricochet_keep(call, old.visibility) : view_str("private");
  struct ricochet_document made = {
      .owner = call->peer,
      .path = write->path,
      .content_type = write->content_type.len > 0 ? write->content_type : view_str("application/octet-stream"),
      .hash = view_str(out->etag),
      .visibility = write->visibility.len > 0 ? write->visibility : kept_visibility,
      .version = exists ? old.version + 1 : 1,
      .updated_ms = call->now_ms,
      .content = write->body,
  };
  ricochet_store_put_document(call->store, &made);
  out->status = exists ? RICOCHET_OK : RICOCHET_CREATED;
}

static void answer_write(struct ricochet_call *call, const struct write *write, const struct written *written) {
  if (written->error && written->status != RICOCHET_CONFLICT) {
    ricochet_refuse(call, written->status, written->error, -1);
    return;
  }
  struct ricochet_writer w = ricochet_respond(call, written->status);
  if (written->error) {
    ricochet_put_text(&w, "Actual-ETag", view_str(written->actual));
    ricochet_put_text(&w, "Error", view_str(written->error));
    ricochet_put_text(&w, "Expected-ETag", write->if_match);
  } else {
    ricochet_put_text(&w, "ETag", view_str(written->etag));
    ricochet_put_int(&w, "Last-Modified", call->now_ms);
  }
  ricochet_finish(call, &w);
}

static void serve_put(struct ricochet_call *call) {
  struct written written;
  struct write write = {
      .path = ricochet_text(call->request, "path"),
      .content_type = ricochet_request_header(call, "Content-Type"),
      .if_match = ricochet_request_header(call, "If-Match"),
      .visibility = ricochet_text(call->request, "visibility"),
  };
  if (!ricochet_bytes(call, call->request, "body", &write.body)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "body is no base64", -1);
    return;
  }
  put(call, &write, &written);
  answer_write(call, &write, &written);
}

/* --- batches --- */

static bool read_item(struct ricochet_call *call, const json_t *object, struct write *out) {
  *out = (struct write){
      .path = ricochet_text(object, "path"),
      .content_type = ricochet_text(object, "contentType"),
      .if_match = ricochet_text(object, "ifMatch"),
      .visibility = ricochet_text(object, "visibility"),
  };
  return ricochet_bytes(call, object, "body", &out->body);
}

static void put_result(struct ricochet_writer *w, struct view path, const struct written *written) {
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "path", path);
  ricochet_put_int(w, "status", written->status);
  if (written->etag[0]) ricochet_put_text(w, "etag", view_str(written->etag));
  if (written->status == RICOCHET_CREATED) ricochet_put_bool(w, "created", true);
  if (written->error) ricochet_put_text(w, "error", view_str(written->error));
  if (written->actual[0]) ricochet_put_text(w, "actualEtag", view_str(written->actual));
  ricochet_close(w, '}');
}

/* The whole of a batch is read first: one that is too large leaves nothing behind. */
static struct write *read_batch(struct ricochet_call *call, const json_t *list, size_t total) {
  struct write *writes = arena_alloc(&call->arena, total * sizeof *writes);
  size_t bytes = 0;
  for (size_t i = 0; writes && i < total; i++) {
    if (!read_item(call, json_array_get(list, i), &writes[i])) {
      ricochet_refuse(call, RICOCHET_BAD_REQUEST, "malformed batch document", -1);
      return NULL;
    }
    bytes += writes[i].body.len;
  }
  if (writes && bytes <= BATCH_BYTES_MAX) return writes;
  ricochet_refuse(
      call, writes ? RICOCHET_TOO_LARGE : RICOCHET_INTERNAL, writes ? "batch too large" : "internal error", -1);
  return NULL;
}

static void answer_batch(struct ricochet_call *call, const struct buf *results, size_t applied, size_t total) {
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_int(&w, "Applied", (int64_t)applied);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_int(&w, "Total", (int64_t)total);
  ricochet_finish_body(call, &w, view_of(results->data, results->len));
}

static void serve_batch_put(struct ricochet_call *call) {
  const json_t *list = ricochet_field(call->request, "batchDocuments");
  size_t total = json_array_size(list), applied = 0;
  if (total < 1 || total > RICOCHET_BATCH_MAX) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "a batch has 1 to 100 documents", -1);
    return;
  }
  struct write *writes = read_batch(call, list, total);
  if (!writes) return;
  struct buf results = {0};
  struct ricochet_writer w = {.out = &results};
  ricochet_open(&w, NULL, '{');
  ricochet_open(&w, "results", '[');
  for (size_t i = 0; i < total; i++) {
    struct written written;
    put(call, &writes[i], &written);
    applied += written.error == NULL;
    put_result(&w, writes[i].path, &written);
  }
  ricochet_close(&w, ']');
  ricochet_close(&w, '}');
  if (!w.failed) answer_batch(call, &results, applied, total);
  buf_free(&results);
}

/* --- reading --- */

static bool may_read(const struct ricochet_call *call, const struct ricochet_document *document) {
  return view_equal(document->owner, call->peer) || view_is(document->visibility, "public");
}

/* The document the request names, when the caller may read it; otherwise the answer is given. */
static bool find(struct ricochet_call *call, struct ricochet_document *out) {
  struct view owner = ricochet_text(call->request, "ownerPeerId"), path = ricochet_text(call->request, "path");
  if (!ricochet_is_path(path)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid path", -1);
  } else if (!ricochet_store_document(call->store, owner, path, out)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, NULL, -1);
  } else if (!may_read(call, out)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: no read access to document", -1);
  } else {
    return true;
  }
  return false;
}

static void put_number_as_text(struct ricochet_writer *w, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  ricochet_put_text(w, key, view_str(text));
}

static void answer_head(struct ricochet_call *call, const struct ricochet_document *document) {
  char modified[40];
  ricochet_time(document->updated_ms, modified);
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_int(&w, "Content-Length", document->size);
  ricochet_put_text(&w, "Content-Type", document->content_type);
  ricochet_put_text(&w, "ETag", document->hash);
  ricochet_put_text(&w, "Last-Modified", view_str(modified));
  put_number_as_text(&w, "Version", document->version);
  ricochet_put_text(&w, "Visibility", document->visibility);
  ricochet_finish(call, &w);
}

static void answer_get(struct ricochet_call *call, const struct ricochet_document *document) {
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", document->content_type);
  ricochet_put_text(&w, "ETag", document->hash);
  ricochet_put_int(&w, "Last-Modified", document->updated_ms);
  ricochet_put_int(&w, "Version", document->version);
  ricochet_put_text(&w, "Visibility", document->visibility);
  ricochet_finish_body(call, &w, document->content);
}

static void serve_get(struct ricochet_call *call, bool head) {
  struct ricochet_document document;
  struct view known = ricochet_request_header(call, "If-None-Match");
  if (!find(call, &document)) return;
  if (known.len > 0 && view_equal(known, document.hash)) {
    struct ricochet_writer w = ricochet_respond(call, RICOCHET_NOT_MODIFIED);
    ricochet_put_text(&w, "ETag", document.hash);
    ricochet_finish(call, &w);
  } else if (head) {
    answer_head(call, &document);
  } else {
    answer_get(call, &document);
  }
}

struct list {
  struct ricochet_writer w;
  const struct ricochet_call *call;
  uint32_t count, max;
  char last[260];
  bool has_more;
};

static bool visit_document(void *context, const struct ricochet_document *document) {
  struct list *list = context;
  char modified[40];
  if (!may_read(list->call, document)) return true;
  if (list->count == list->max) {
    list->has_more = true;
    return false;
  }
  list->count++;
  snprintf(list->last, sizeof list->last, "%.*s", (int)document->path.len, (const char *)document->path.data);
  ricochet_time(document->updated_ms, modified);
  ricochet_open(&list->w, NULL, '{');
  ricochet_put_text(&list->w, "path", document->path);
  ricochet_put_text(&list->w, "contentType", document->content_type);
  ricochet_put_text(&list->w, "contentHash", document->hash);
  ricochet_put_int(&list->w, "size", document->size);
  ricochet_put_text(&list->w, "updatedAt", view_str(modified));
  ricochet_put_int(&list->w, "versionNumber", document->version);
  ricochet_put_text(&list->w, "visibility", document->visibility);
  ricochet_close(&list->w, '}');
  return true;
}

static void serve_list(struct ricochet_call *call) {
  struct buf body = {0};
  int64_t max = ricochet_number(call->request, "listLimit", LIST_DEFAULT);
  struct list list = {.w = {.out = &body}, .call = call};
  list.max = max < 1 ? LIST_DEFAULT : max > LIST_MAX ? LIST_MAX : (uint32_t)max;
  ricochet_open(&list.w, NULL, '[');
  ricochet_store_walk_documents(call->store, ricochet_text(call->request, "ownerPeerId"),
      ricochet_text(call->request, "listCursor"), visit_document, &list);
  ricochet_close(&list.w, ']');
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_bool(&w, "Has-More", list.has_more);
  if (list.has_more) ricochet_put_text(&w, "Next-Cursor", view_str(list.last));
  w.failed |= list.w.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

/* --- changing --- */

static void merge(json_t *into, const json_t *patch) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)patch, key, value) {
    json_t *old = json_object_get(into, key);
    if (json_is_null(value)) {
      json_object_del(into, key);
    } else if (json_is_object(value) && json_is_object(old)) {
      merge(old, value);
    } else {
      json_object_set(into, key, value);
    }
  }
}

/* The document's bytes with the patch merged in; NULL when one of the two is no JSON object. */
static char *patched(struct view content, struct view patch) {
  if (!ricochet_is_modest(content) || !ricochet_is_modest(patch)) return NULL;
  json_t *into = json_loadb((const char *)content.data, content.len, 0, NULL);
  json_t *from = json_loadb((const char *)patch.data, patch.len, 0, NULL);
  char *text = NULL;
  if (json_is_object(into) && json_is_object(from)) {
    merge(into, from);
    text = json_dumps(into, JSON_COMPACT | JSON_PRESERVE_ORDER);
  }
  json_decref(into);
  json_decref(from);
  return text;
}

static void serve_patch(struct ricochet_call *call) {
  struct ricochet_document document;
  struct written written;
  struct view patch;
  struct write write = {
      .path = ricochet_text(call->request, "path"), .if_match = ricochet_request_header(call, "If-Match")};
  if (!ricochet_bytes(call, call->request, "body", &patch)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "body is no base64", -1);
    return;
  }
  if (!find(call, &document)) return;
  write.content_type = ricochet_keep(call, document.content_type);
  char *text = patched(document.content, patch);
  if (!text) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "document and patch must be JSON objects", -1);
    return;
  }
  write.body = view_str(text);
  put(call, &write, &written);
  answer_write(call, &write, &written);
  free(text);
}

static void serve_delete(struct ricochet_call *call) {
  struct ricochet_document document;
  if (!find(call, &document)) return;
  ricochet_store_delete_document(call->store, call->peer, ricochet_text(call->request, "path"));
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_DELETED);
  ricochet_finish(call, &w);
}

void ricochet_serve_document(struct ricochet_call *call) {
  struct view operation = ricochet_text(call->request, "operation");
  struct view owner = ricochet_text(call->request, "ownerPeerId");
  bool reads = view_is(operation, "GET") || view_is(operation, "HEAD") || view_is(operation, "LIST");
  if (!ricochet_is_peer_id(owner)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "ownerPeerId is required", -1);
  } else if (!reads && !view_equal(owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the owner", -1);
  } else if (view_is(operation, "PUT")) {
    serve_put(call);
  } else if (view_is(operation, "GET") || view_is(operation, "HEAD")) {
    serve_get(call, view_is(operation, "HEAD"));
  } else if (view_is(operation, "BATCH_PUT")) {
    serve_batch_put(call);
  } else if (view_is(operation, "LIST")) {
    serve_list(call);
  } else if (view_is(operation, "PATCH")) {
    serve_patch(call);
  } else if (view_is(operation, "DELETE")) {
    serve_delete(call);
  } else {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "unknown operation", -1);
  }
}
