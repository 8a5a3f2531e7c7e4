/* Collections: JSON values by key, paged and filtered. */
#include "server/ricochet_call.h"

#include "base/base64.h"

#include <stdio.h>
#include <strings.h>

#define KEY_MAX 256
#define NAME_MAX_BYTES 256
#define FIELD_MAX 128
#define PAGE_DEFAULT 50
#define PAGE_MAX 1000
#define PAGE_BYTES_MAX (8u * 1024 * 1024)
#define FILTER_DEPTH_MAX 16
#define WORK_MAX 50000000 /* comparisons of one query */

/* --- filters --- */

static bool is_field(const char *name) {
  size_t len = strlen(name);
  if (len == 0 || len > FIELD_MAX) return false;
  for (size_t i = 0; i < len; i++) {
    char c = name[i];
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fine && c != '_' && c != '.' && c != '-') return false;
  }
  return true;
}

/* What a query may still cost: a filter that compares everything with everything ends here. */
static bool spend(uint64_t *work, uint64_t cost) {
  *work = *work > cost ? *work - cost : 0;
  return *work > 0;
}

/* As jsonb's containment: objects hold the members asked for, arrays each element asked for. */
static bool contains(const json_t *whole, const json_t *part, uint64_t *work) {
  const char *key;
  json_t *value;
  if (!spend(work, 1)) return false;
  if (json_is_object(part)) {
    json_object_foreach((json_t *)part, key, value) {
      const json_t *own = json_object_get(whole, key);
      if (!own || !contains(own, value, work)) return false;
    }
    return json_is_object(whole);
  }
  if (!json_is_array(part)) return json_equal((json_t *)whole, (json_t *)part) == 1;
  for (size_t i = 0; i < json_array_size(part); i++) {
    bool found = false;
    for (size_t k = 0; k < json_array_size(whole) && !found; k++)
      found = contains(json_array_get(whole, k), json_array_get(part, i), work);
    if (!found) return false;
  }
  return json_is_array(whole);
}

static bool compares(const json_t *value, const char *operator, const json_t * operand) {
  if (!json_is_number(value) || !json_is_number(operand)) return false;
  double a = json_number_value(value), b = json_number_value(operand);
  if (strcmp(operator, "$lt") == 0) return a < b;
  if (strcmp(operator, "$lte") == 0) return a <= b;
  if (strcmp(operator, "$gt") == 0) return a > b;
  return a >= b;
}

/* '%' stands for any text and '_' for any character, whatever the case of letters. */
static bool is_like(const char *text, const char *pattern, uint64_t *work) {
  const char *star = NULL, *from = NULL;
  while (*text) {
    if (!spend(work, 1)) return false;
    if (*pattern == '%') {
      star = pattern++;
      from = text;
    } else if (*pattern == '_' || (*pattern && strncasecmp(pattern, text, 1) == 0)) {
      pattern++;
      text++;
    } else if (star) {
      pattern = star + 1;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '%')
    pattern++;
  return *pattern == '\0';
}

static bool is_operator(const char *name) {
  static const char *const names[] = {"$lt", "$lte", "$gt", "$gte", "$ilike", "$contains"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(name, names[i]) == 0) return true;
  }
  return false;
}

static bool meets(const json_t *value, const char *operator, const json_t * operand, uint64_t *work) {
  if (strcmp(operator, "$contains") == 0) return value && contains(value, operand, work);
  if (strcmp(operator, "$ilike") != 0) return compares(value, operator, operand);
  return json_is_string(value) && json_is_string(operand) &&
         is_like(json_string_value(value), json_string_value(operand), work);
}

static bool meets_all(const json_t *value, const json_t *condition, uint64_t *work) {
  const char *key;
  json_t *operand;
  json_object_foreach((json_t *)condition, key, operand) {
    if (!meets(value, key, operand, work)) return false;
  }
  return true;
}

static bool has_operators(const json_t *condition) {
  const char *first = json_is_object(condition) ? json_object_iter_key(json_object_iter((json_t *)condition)) : NULL;
  return first && first[0] == '$';
}

/* Whether a filter can be understood; matches may rely on it. */
static bool is_filter(const json_t *filter, int depth) {
  const char *key;
  json_t *value;
  if (!json_is_object(filter) || depth > FILTER_DEPTH_MAX) return false;
  json_object_foreach((json_t *)filter, key, value) {
    if (strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0) {
      if (!json_is_array(value)) return false;
      for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_filter(json_array_get(value, i), depth + 1)) return false;
      }
      continue;
    }
    if (!is_field(key)) return false;
    if (!has_operators(value)) continue;
    const char *operator;
    json_t *operand;
    json_object_foreach(value, operator, operand) {
      if (!is_operator(operator)) return false;
    }
  }
  return true;
}

static bool matches(const json_t *item, const json_t *filter, uint64_t *work);

static bool matches_list(const json_t *item, const json_t *list, bool all, uint64_t *work) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (matches(item, json_array_get(list, i), work) != all) return !all;
  }
  return all;
}

static bool matches(const json_t *item, const json_t *filter, uint64_t *work) {
  const char *key;
  json_t *condition;
  json_object_foreach((json_t *)filter, key, condition) {
    if (!spend(work, 1)) return false;
    const json_t *value = json_object_get(item, key);
    bool holds;
    if (key[0] == '$') {
      holds = matches_list(item, condition, strcmp(key, "$and") == 0, work);
    } else if (has_operators(condition)) {
      holds = meets_all(value, condition, work);
    } else {
      holds = value && contains(value, condition, work);
    }
    if (!holds) return false;
  }
  return true;
}

/* --- pages --- */

struct page {
  struct ricochet_writer w;
  const json_t *filter; /* NULL: everything */
  uint32_t count, max;
  uint64_t total; /* of what matches; walks to the end only when it is wanted */
  uint64_t work;  /* left for the filter; 0: it costs too much */
  bool keys_only, has_more, wants_total;
  char last[KEY_MAX + 1];
};

static bool does_match(struct page *page, const struct ricochet_item *item) {
  if (!page->filter) return true;
  if (!spend(&page->work, item->content.len / 16)) return false;
  json_t *content = json_loadb((const char *)item->content.data, item->content.len, JSON_DECODE_ANY, NULL);
  bool match = content && matches(content, page->filter, &page->work);
  json_decref(content);
  return match;
}

static void put_item(struct page *page, const struct ricochet_item *item) {
  struct ricochet_writer *w = &page->w;
  snprintf(page->last, sizeof page->last, "%.*s", (int)item->key.len, (const char *)item->key.data);
  if (page->keys_only) {
    ricochet_put_text(w, NULL, item->key);
    return;
  }
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "key", item->key);
  ricochet_put_json(w, "content", item->content);
  ricochet_put_text(w, "hash", item->hash);
  ricochet_put_int(w, "version", item->version);
  ricochet_put_int(w, "updatedAt", item->updated_ms);
  ricochet_close(w, '}');
}

static bool visit_item(void *context, const struct ricochet_item *item) {
  struct page *page = context;
  if (!does_match(page, item)) return page->work > 0;
  page->total++;
  bool is_full = page->count > 0 && page->w.out->len + item->content.len > PAGE_BYTES_MAX;
  if (page->count == page->max || is_full) {
    page->has_more = true;
    return page->wants_total;
  }
  page->count++;
  put_item(page, item);
  return true;
}

/* URL-safe, without padding. */
static void cursor_of(const char *key, char out[KEY_MAX * 2]) {
  char *end = base64_encode(BASE64_URL, out, (const uint8_t *)key, strlen(key));
  while (end > out && end[-1] == '=')
    end--;
  *end = '\0';
}

/* False when it is none of ours. */
static bool key_of(struct ricochet_call *call, struct view cursor, struct view *key) {
  size_t padded = (cursor.len + 3) / 4 * 4, len;
  char *text = arena_alloc(&call->arena, padded + 1);
  uint8_t *bytes = arena_alloc(&call->arena, padded + 1);
  if (!text || !bytes || cursor.len == 0 || cursor.len > KEY_MAX * 2) return false;
  memset(text, '=', padded);
  memcpy(text, cursor.data, cursor.len);
  if (!base64_decode(BASE64_URL, view_of(text, padded), bytes, &len)) return false;
  *key = view_of(bytes, len);
  return true;
}

/* False after a refusal. */
static bool read_sort_field(struct ricochet_call *call, struct ricochet_order *order) {
  char *path = arena_alloc(&call->arena, FIELD_MAX + 8);
  const char *name = json_string_value(ricochet_field(call->request, "sortField"));
  if (!path || !is_field(name)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid sort field", -1);
    return false;
  }
  snprintf(path, FIELD_MAX + 8, "$.\"%s\"", name);
  order->field = path;
  return true;
}

/* Reads the order and the bounds of a page; false after a refusal. */
static bool read_page(struct ricochet_call *call, struct ricochet_order *order, struct page *page) {
  const json_t *request = call->request, *filter = ricochet_field(request, "filter");
  struct view cursor = ricochet_text(request, "cursor"), field = ricochet_text(request, "sortField");
  int64_t max = ricochet_number(request, "limit", PAGE_DEFAULT);
  order->descending = json_is_false(ricochet_field(request, "sortAsc"));
  order->offset = ricochet_number(request, "offset", 0);
  page->max = max < 1 ? PAGE_DEFAULT : max > PAGE_MAX ? PAGE_MAX : (uint32_t)max;
  page->filter = json_object_size(filter) > 0 ? filter : NULL;
  page->wants_total = cursor.len == 0 && page->filter && ricochet_truth(request, "wantTotal");
  if (filter && !json_is_null(filter) && !is_filter(filter, 0)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid filter", -1);
    return false;
  }
  if (cursor.len > 0 && !key_of(call, cursor, &order->behind)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid cursor", -1);
    return false;
  }
  return field.len == 0 || read_sort_field(call, order);
}

static void put_page_headers(
    struct ricochet_writer *w, const struct ricochet_call *call, const struct page *page, int64_t count, bool by_key) {
  char cursor[KEY_MAX * 2];
  bool first = ricochet_text(call->request, "cursor").len == 0;
  ricochet_put_text(w, "Content-Type", view_str("application/json"));
  if (page->has_more && by_key) {
    cursor_of(page->last, cursor);
    ricochet_put_text(w, "Next-Cursor", view_str(cursor));
  }
  ricochet_put_bool(w, "X-Has-More", page->has_more);
  if (page->wants_total || (first && !page->filter)) {
    ricochet_put_int(w, "X-Total-Count", page->wants_total ? (int64_t)page->total : count);
  }
}

static void answer_page(struct ricochet_call *call, const struct ricochet_collection *collection, bool keys_only) {
  struct buf json = {0};
  struct page page = {.w = {.out = &json}, .work = WORK_MAX, .keys_only = keys_only};
  struct ricochet_order order = {.collection = collection->id};
  int64_t count = collection->count;
  if (!read_page(call, &order, &page)) return;
  ricochet_open(&page.w, NULL, '{');
  ricochet_open(&page.w, keys_only ? "keys" : "items", '[');
  ricochet_store_walk_items(call->store, &order, visit_item, &page);
  ricochet_close(&page.w, ']');
  ricochet_close(&page.w, '}');
  if (page.work == 0) {
    buf_free(&json);
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "the filter costs too much", -1);
    return;
  }
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  put_page_headers(&w, call, &page, count, order.field == NULL);
  w.failed |= page.w.failed;
  if (keys_only) {
    ricochet_finish_body(call, &w, view_of(json.data, json.len));
  } else {
    ricochet_finish_data(call, &w, view_of(json.data, json.len));
  }
  buf_free(&json);
}

/* --- collections --- */

static void put_collection(void *context, const struct ricochet_collection *collection) {
  struct ricochet_writer *w = context;
  char id[24];
  snprintf(id, sizeof id, "%lld", (long long)collection->id);
  ricochet_open(w, NULL, '{');
  ricochet_put_int(w, "createdAt", collection->created_ms);
  ricochet_put_text(w, "id", view_str(id));
  ricochet_put_text(w, "name", collection->name);
  ricochet_put_text(w, "path", collection->path);
  ricochet_put_int(w, "recordCount", collection->count);
  ricochet_put_text(w, "visibility", collection->visibility);
  ricochet_close(w, '}');
}

static void answer_collection(
    struct ricochet_call *call, int32_t status, const struct ricochet_collection *collection) {
  struct buf body = {0};
  struct ricochet_writer json = {.out = &body};
  put_collection(&json, collection);
  struct ricochet_writer w = ricochet_respond(call, status);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_int(&w, "X-Record-Count", collection->count);
  w.failed |= json.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

static void create(struct ricochet_call *call, struct view path) {
  struct view visibility = ricochet_text(call->request, "visibility");
  struct ricochet_collection made = {
      .created_ms = call->now_ms,
      .owner = call->peer,
      .path = path,
      .name = ricochet_text(call->request, "name"),
      .visibility = visibility.len > 0 ? visibility : view_str("private"),
  };
  struct ricochet_collection old;
  bool known =
      view_is(made.visibility, "public") || view_is(made.visibility, "private") || view_is(made.visibility, "shared");
  if (made.name.len > NAME_MAX_BYTES || !known) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid name or visibility", -1);
  } else if (ricochet_store_collection(call->store, call->peer, path, &old)) {
    ricochet_refuse(call, RICOCHET_INTERNAL, "internal error", -1);
  } else {
    ricochet_store_add_collection(call->store, &made);
    answer_collection(call, RICOCHET_CREATED, &made);
  }
}

static void list_collections(struct ricochet_call *call) {
  struct buf body = {0};
  struct ricochet_writer json = {.out = &body};
  ricochet_open(&json, NULL, '[');
  ricochet_store_list_collections(call->store, call->peer, put_collection, &json);
  ricochet_close(&json, ']');
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  w.failed |= json.failed;
  ricochet_finish_body(call, &w, view_of(body.data, body.len));
  buf_free(&body);
}

/* --- items --- */

/* The value as it is kept: without white space, keys in order. NULL when it is no JSON, too much, or holds a NUL. */
static char *normalised(struct view body) {
  if (!ricochet_is_modest(body)) return NULL;
  json_t *value = json_loadb((const char *)body.data, body.len, JSON_DECODE_ANY, NULL);
  char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
  json_decref(value);
  return text;
}

static void store_item(
    struct ricochet_call *call, int64_t collection, struct view key, struct view body, const char *text) {
  char etag[RICOCHET_ETAG_BYTES];
  struct ricochet_item old = {0};
  struct view if_match = ricochet_request_header(call, "If-Match");
  bool exists = ricochet_store_item(call->store, collection, key, &old);
  if (exists && if_match.len > 0 && !view_equal(if_match, old.hash)) {
    ricochet_refuse(call, RICOCHET_CONFLICT, "etag mismatch", -1);
    return;
  }
  ricochet_etag(body, etag);
  struct ricochet_item item = {
      .key = key,
      .hash = view_str(etag),
      .content = view_str(text),
      .version = exists ? old.version + 1 : 1,
      .created_ms = exists ? old.created_ms : call->now_ms,
      .updated_ms = call->now_ms,
  };
  ricochet_store_put_item(call->store, collection, &item, !exists);
  struct ricochet_writer w = ricochet_respond(call, exists ? RICOCHET_OK : RICOCHET_CREATED);
  ricochet_put_text(&w, "ETag", item.hash);
  ricochet_put_int(&w, "X-Version", item.version);
  ricochet_finish(call, &w);
}

static void put(struct ricochet_call *call, int64_t collection, struct view key) {
  struct view body;
  char *text = ricochet_bytes(call, call->request, "body", &body) ? normalised(body) : NULL;
  if (key.len == 0 || !text) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "key and a JSON body are required", -1);
  } else {
    store_item(call, collection, key, body, text);
  }
  free(text);
}

static void get(struct ricochet_call *call, int64_t collection, struct view key) {
  struct ricochet_item item;
  if (!ricochet_store_item(call->store, collection, key, &item)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, "item not found", -1);
    return;
  }
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_OK);
  ricochet_put_text(&w, "Content-Type", view_str("application/json"));
  ricochet_put_int(&w, "Created-At", item.created_ms);
  ricochet_put_text(&w, "ETag", item.hash);
  ricochet_put_int(&w, "Updated-At", item.updated_ms);
  ricochet_put_int(&w, "X-Version", item.version);
  ricochet_finish_data(call, &w, item.content);
}

static void answer_deleted(struct ricochet_call *call) {
  struct ricochet_writer w = ricochet_respond(call, RICOCHET_DELETED);
  ricochet_finish(call, &w);
}

static void delete_item(struct ricochet_call *call, int64_t collection, struct view key) {
  struct ricochet_item item;
  if (!ricochet_store_item(call->store, collection, key, &item)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, "item not found", -1);
    return;
  }
  ricochet_store_delete_item(call->store, collection, key);
  answer_deleted(call);
}

static void write_one(
    struct ricochet_call *call, struct view operation, const struct ricochet_collection *collection, struct view key) {
  int64_t id = collection->id;
  if (!view_equal(collection->owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the owner", -1);
  } else if (view_is(operation, "PUT")) {
    put(call, id, key);
  } else if (key.len > 0) {
    delete_item(call, id, key);
  } else {
    ricochet_store_delete_collection(call->store, id);
    answer_deleted(call);
  }
}

static void read_one(
    struct ricochet_call *call, struct view operation, const struct ricochet_collection *collection, struct view key) {
  if (!view_is(collection->visibility, "public") && !view_equal(collection->owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: no read access to collection", -1);
  } else if (view_is(operation, "QUERY") || view_is(operation, "LIST")) {
    answer_page(call, collection, view_is(operation, "LIST"));
  } else if (!view_is(operation, "GET")) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "unknown operation", -1);
  } else if (key.len > 0) {
    get(call, collection->id, key);
  } else {
    answer_collection(call, RICOCHET_OK, collection);
  }
}

static void serve_one(struct ricochet_call *call, struct view operation, struct view owner, struct view path) {
  struct ricochet_collection collection;
  struct view key = ricochet_text(call->request, "key");
  if (key.len > KEY_MAX || (key.len > 0 && memchr(key.data, '\0', key.len))) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid key", -1);
  } else if (!ricochet_store_collection(call->store, owner, path, &collection)) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, "collection not found", -1);
  } else if (view_is(operation, "PUT") || view_is(operation, "DELETE")) {
    write_one(call, operation, &collection, key);
  } else {
    read_one(call, operation, &collection, key);
  }
}

void ricochet_serve_collection(struct ricochet_call *call) {
  struct view operation = ricochet_text(call->request, "operation");
  struct view owner = ricochet_text(call->request, "ownerPeerId");
  struct view path = ricochet_text(call->request, "path");
  if (!ricochet_is_peer_id(owner)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "ownerPeerId is required", -1);
  } else if (view_is(operation, "LIST") && path.len == 0) {
    list_collections(call);
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
