/* Feeds: append-only lists of entries. */
#include "server/ricochet_call.h"

#include <limits.h>

#define TITLE_MAX 256
#define DESCRIPTION_MAX 4096
#define TYPE_MAX 64
#define PAGE_DEFAULT 50
#define PAGE_MAX 1000
#define PAGE_BYTES_MAX (5u * 1024 * 1024)

static void put_feed(struct ricochet_writer *w, const struct ricochet_feed *feed) {
  char id[24];
  snprintf(id, sizeof id, "%lld", (long long)feed->id);
  ricochet_open(w, NULL, '{');
  ricochet_put_bool(w, "collaborativeMode", feed->collaborative);
  ricochet_put_int(w, "createdAt", feed->created_ms);
  ricochet_put_int(w, "currentSequence", feed->sequence);
  ricochet_put_text(w, "description", feed->description);
  ricochet_put_text(w, "id", view_str(id));
  ricochet_put_text(w, "path", feed->path);
  ricochet_put_text(w, "title", feed->title);
  ricochet_put_text(w, "visibility", feed->visibility);
  ricochet_close(w, '}');
}

static void answer_feed(struct ricochet_call *call, int32_t status, const struct ricochet_feed *feed) {
  struct buf body = {0};
  struct ricochet_writer json = {.out = &body};
  put_feed(&json, feed);
  struct ricochet_writer w = ricochet_respond(call, status);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  w.failed |= json.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

static void create(struct ricochet_call *call, struct view path) {
  const json_t *request = call->request;
  struct view visibility = ricochet_text(request, "visibility");
  struct ricochet_feed feed = {
      .created_ms = call->now_ms,
      .owner = call->peer,
      .path = path,
      .title = ricochet_text(request, "title"),
      .description = ricochet_text(request, "description"),
      .visibility = visibility.len > 0 ? visibility : view_str("public"),
      .collaborative = ricochet_truth(request, "collaborative"),
  };
  bool known =
      view_is(feed.visibility, "public") || view_is(feed.visibility, "private") || view_is(feed.visibility, "shared");
  if (feed.title.len > TITLE_MAX || feed.description.len > DESCRIPTION_MAX || !known) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid title, description or visibility", -1);
    return;
  }
  ricochet_store_put_feed(call->store, &feed);
  if (ricochet_store_feed(call->store, call->peer, path, &feed)) {
    answer_feed(call, RICOCHET_CREATED, &feed);
  } else {
    ricochet_refuse(call, RICOCHET_INTERNAL, "internal error", -1);
  }
}

static void append(struct ricochet_call *call, const struct ricochet_feed *feed) {
  char etag[RICOCHET_ETAG_BYTES];
  struct ricochet_entry entry = {
      .sequence = feed->sequence + 1,
      .created_ms = call->now_ms,
      .type = ricochet_text(call->request, "entryType"),
      .created_by = call->peer,
  };
  if (!feed->collaborative && !view_equal(feed->owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the owner", -1);
    return;
  }
  if (!ricochet_bytes(call, call->request, "body", &entry.content) || entry.type.len > TYPE_MAX) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid body or entry type", -1);
    return;
  }
  if (feed->sequence >= call->service->limits.feed_entries) {
    ricochet_refuse(call, RICOCHET_FULL, "feed is full", -1);
    return;
  }
  ricochet_etag(entry.content, etag);
  entry.hash = view_str(etag);
  ricochet_store_append(call->store, feed, &entry);
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_CREATED);
  ricochet_put_text(&w, "ETag", entry.hash);
  ricochet_put_int(&w, "X-Sequence", entry.sequence);
  ricochet_finish(call, &w);
}

static void answer_entry(struct ricochet_call *call, int64_t feed, int64_t sequence) {
  struct ricochet_entry entry;
  if (!ricochet_store_entry(call->store, feed, sequence, &entry)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, NULL, -1);
    return;
  }
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_int(&w, "Created-At", entry.created_ms);
  ricochet_put_text(&w, "ETag", entry.hash);
  ricochet_put_text(&w, "X-Created-By", entry.created_by);
  ricochet_put_text(&w, "X-Entry-Type", entry.type);
  ricochet_put_int(&w, "X-Sequence", entry.sequence);
  ricochet_finish_body(call, &w, entry.content);
}

struct page {
  struct ricochet_writer w;
  struct view type; /* empty: entries of any */
  uint32_t count, max;
  int64_t next;
  bool has_more;
};

static bool visit_entry(void *context, const struct ricochet_entry *entry) {
  struct page *page = context;
  if (page->type.len > 0 && !view_equal(page->type, entry->type)) return true;
  page->has_more = page->count == page->max || (page->count > 0 && page->w.out->len > PAGE_BYTES_MAX);
  if (page->has_more) return false;
  page->count++;
  page->next = entry->sequence + 1;
  ricochet_open(&page->w, NULL, '{');
  ricochet_put_int(&page->w, "seq", entry->sequence);
  if (entry->type.len > 0) ricochet_put_text(&page->w, "type", entry->type);
  ricochet_put_base64(&page->w, "content", entry->content);
  ricochet_put_text(&page->w, "hash", entry->hash);
  ricochet_put_int(&page->w, "createdAt", entry->created_ms);
  ricochet_put_text(&page->w, "createdBy", entry->created_by);
  ricochet_close(&page->w, '}');
  return true;
}

static void answer_range(struct ricochet_call *call, int64_t feed) {
  struct buf body = {0};
  int64_t from = ricochet_number(call->request, "fromSequence", 1);
  int64_t to = ricochet_number(call->request, "toSequence", INT64_MAX);
  int64_t max = ricochet_number(call->request, "limit", PAGE_DEFAULT);
  struct page page = {.w = {.out = &body}, .type = ricochet_text(call->request, "entryType")};
  page.max = max < 1 ? PAGE_DEFAULT : max > PAGE_MAX ? PAGE_MAX : (uint32_t)max;
  ricochet_open(&page.w, NULL, '{');
  ricochet_open(&page.w, "entries", '[');
  ricochet_store_walk_entries(call->store, feed, from, to, visit_entry, &page);
  ricochet_close(&page.w, ']');
  ricochet_close(&page.w, '}');
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_bool(&w, "X-Has-More", page.has_more);
  if (page.has_more) ricochet_put_int(&w, "X-Next-Sequence", page.next);
  w.failed |= page.w.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

static void get(struct ricochet_call *call, const struct ricochet_feed *feed) {
  const json_t *request = call->request;
  if (!view_is(feed->visibility, "public") && !view_equal(feed->owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: no read access to feed", -1);
  } else if (ricochet_field(request, "sequenceNumber")) {
    answer_entry(call, feed->id, ricochet_number(request, "sequenceNumber", 0));
  } else if (ricochet_field(request, "fromSequence") || ricochet_field(request, "toSequence") ||
             ricochet_field(request, "limit")) {
    answer_range(call, feed->id);
  } else {
    answer_feed(call, RICOCHET_OK, feed);
  }
}

struct listing {
  struct ricochet_writer w;
  const struct ricochet_call *call;
};

static void visit_feed(void *context, const struct ricochet_feed *feed) {
  struct listing *listing = context;
  if (!view_is(feed->visibility, "public") && !view_equal(feed->owner, listing->call->peer)) return;
  put_feed(&listing->w, feed);
}

static void list(struct ricochet_call *call, struct view owner) {
  struct buf body = {0};
  struct listing listing = {.w = {.out = &body}, .call = call};
  ricochet_open(&listing.w, NULL, '[');
  ricochet_store_list_feeds(call->store, owner, visit_feed, &listing);
  ricochet_close(&listing.w, ']');
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  w.failed |= listing.w.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

static void delete_feed(struct ricochet_call *call, int64_t id) {
  ricochet_store_delete_feed(call->store, id);
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_DELETED);
  ricochet_finish(call, &w);
}

/* What needs the feed to be there. */
static void serve_one(struct ricochet_call *call, struct view operation, struct view owner, struct view path) {
  struct ricochet_feed feed;
  if (!ricochet_store_feed(call->store, owner, path, &feed)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, "feed not found", -1);
  } else if (view_is(operation, "APPEND")) {
    append(call, &feed);
  } else if (view_is(operation, "GET")) {
    get(call, &feed);
  } else if (!view_is(operation, "DELETE")) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "unknown operation", -1);
  } else if (!view_equal(owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the owner", -1);
  } else {
    delete_feed(call, feed.id);
  }
}

void ricochet_serve_feed(struct ricochet_call *call) {
  struct view operation = ricochet_text(call->request, "operation");
  struct view owner = ricochet_text(call->request, "ownerPeerId");
  struct view path = ricochet_text(call->request, "path");
  if (!ricochet_is_peer_id(owner)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "ownerPeerId is required", -1);
  } else if (view_is(operation, "LIST")) {
    list(call, owner);
  } else if (!ricochet_is_path(path)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid path", -1);
  } else if (!view_is(operation, "CREATE")) {
    serve_one(call, operation, owner, path);
  } else if (!view_equal(owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the owner", -1);
  } else {
    create(call, path);
  }
}
