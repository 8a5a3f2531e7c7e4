/* Reading messages back: by number, by page, by id. */
#include "server/core_state.h"
#include "server/recipients.h"

#include <stdlib.h>

struct fetch {
  struct core *core;
  struct message *message;
};

static bool take_message(void *context, const struct store_message *row) {
  struct fetch *fetch = context;
  if (message_row_is_sound(fetch->core, row)) fetch->message = message_of_row(fetch->core, row);
  return false;
}

const struct message *message_find(struct core *core, int64_t id, struct message **owned) {
  *owned = NULL;
  const struct message *cached = cache_find(core, id);
  if (cached) return cached;
  struct fetch fetch = {.core = core};
  store_message_by_id(core->store, id, take_message, &fetch);
  *owned = fetch.message;
  return fetch.message;
}

struct collector {
  struct core *core;
  const struct history_query *query;
  struct history_page *page;
  uint32_t scanned;
  size_t bytes;
};

static bool type_wanted(const struct history_query *query, struct view type) {
  for (uint32_t i = 0; i < query->type_count; i++)
    if (view_equal(query->types[i], type)) return true;
  return query->type_count == 0;
}

/* The viewer's receive time and unread index, and whether the message may be shown at all. */
static bool visible(const struct store_message *row, const struct user *viewer, int64_t *unread_index) {
  struct recipient recipient;
  *unread_index = 0;
  if (row->sender == viewer->num) return true;
  bool received = recipients_find(row->recipients, row->time_ms, viewer->num, &recipient);
  if (received) *unread_index = recipient.unread_index;
  return received || !(row->marks & STORE_DIRECTED);
}

static void page_add(struct core *core, struct history_page *page, const struct store_message *row, int64_t unread) {
  struct message *message = message_of_row(core, row);
  if (!message) {
    core_out_of_memory(core);
    return;
  }
  page->unread_index[page->count] = unread;
  page->messages[page->count++] = message;
}

static bool collect(void *context, const struct store_message *row) {
  struct collector *collector = context;
  const struct history_query *query = collector->query;
  struct history_page *page = collector->page;
  if (page->count == query->limit || collector->bytes > PAGE_BYTES || collector->scanned == HISTORY_SCAN) {
    page->is_finished = page->count == 0; /* nothing to go on from: an end, not a loop */
    return false;
  }
  collector->scanned++;
  int64_t unread;
  struct juggle_up_msg up;
  if (!message_row_is_sound(collector->core, row) || !visible(row, query->viewer, &unread)) return true;
  if (!juggle_read_up_msg(row->body, &up) || !type_wanted(query, up.msg_type)) return true;
  page_add(collector->core, page, row, unread);
  collector->bytes += row->body.len;
  return true;
}

void history_collect(struct core *core, const struct history_query *query, struct history_page *page) {
  page->count = 0;
  page->is_finished = true;
  struct collector collector = {.core = core, .query = query, .page = page};
  store_history(core->store, query->conversation->num, query->start_ms, query->oldest_first, collect, &collector);
  if (page->count == query->limit) page->is_finished = false; /* as the original: fewer than asked means the end */
  if (query->oldest_first) return;
  for (uint32_t i = 0, j = page->count; i + 1 < j; i++) {
    j--;
    struct message *message = page->messages[i];
    page->messages[i] = page->messages[j];
    page->messages[j] = message;
    int64_t unread = page->unread_index[i];
    page->unread_index[i] = page->unread_index[j];
    page->unread_index[j] = unread;
  }
}

void history_page_free(struct history_page *page) {
  for (uint32_t i = 0; i < page->count; i++)
    free(page->messages[i]);
  page->count = 0;
}

/* The send time in the first 42 of an id's 80 bits; 0 when it is none of ours. */
static int64_t msg_id_time(struct view msg_id) {
  static const char alphabet[] = "abcdefghjklmnpqrstuvwxyz23456789";
  if (msg_id.len != JUGGLE_MSG_ID_LEN) return 0;
  uint64_t bits = 0;
  for (int i = 0; i < 9; i++) { /* 45 bits */
    const char *at = memchr(alphabet, msg_id.data[i], sizeof alphabet - 1);
    if (!at) return 0;
    bits = bits << 5 | (uint64_t)(at - alphabet);
  }
  return (int64_t)(bits >> 3);
}

struct by_id {
  struct core *core;
  const struct user *viewer;
  struct view msg_id;
  struct history_page *page;
};

static bool take_if_same(void *context, const struct store_message *row) {
  const struct by_id *wanted = context;
  int64_t unread;
  bool same = view_equal(row->msg_id, wanted->msg_id) && message_row_is_sound(wanted->core, row);
  if (same && visible(row, wanted->viewer, &unread)) page_add(wanted->core, wanted->page, row, unread);
  return true;
}

void history_by_ids(struct core *core, struct conversation *conversation, const struct user *viewer,
    const struct view *msg_ids, uint32_t count, struct history_page *page) {
  page->count = 0;
  page->is_finished = true;
  for (uint32_t i = 0; i < count && page->count < HISTORY_PAGE; i++) {
    struct by_id wanted = {core, viewer, msg_ids[i], page};
    int64_t time_ms = msg_id_time(msg_ids[i]);
    if (time_ms) store_message_by_time(core->store, conversation->num, time_ms, take_if_same, &wanted);
  }
}
