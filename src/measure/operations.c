#include "measure/operations.h"

#include <assert.h>
#include <string.h>

static_assert(OPERATIONS_KNOWN <= OPERATIONS_MAX, "each has a place in a worker's figures");

const struct operation_name operation_names[OPERATIONS_KNOWN + 1] = {
    [OPERATION_SUBMIT] = {"submit", NULL},
    [OPERATION_BATCH_SUBMIT] = {"batch_submit", "messages"},
    [OPERATION_RETRIEVE] = {"retrieve", "messages"},
    [OPERATION_MARK_DELIVERED] = {"mark_delivered", NULL},
    [OPERATION_PUT_DOCUMENT] = {"put_document", NULL},
    [OPERATION_GET_DOCUMENT] = {"get_document", NULL},
    [OPERATION_BATCH_PUT] = {"batch_put", "documents"},
    [OPERATION_LIST] = {"list_documents", "documents"},
    [OPERATION_CREATE_FEED] = {"create_feed", NULL},
    [OPERATION_APPEND] = {"append_entry", NULL},
    [OPERATION_GET_ENTRY] = {"get_entry", NULL},
    [OPERATION_CREATE_COLLECTION] = {"create_collection", NULL},
    [OPERATION_PUT_ITEM] = {"put_item", NULL},
    [OPERATION_QUERY] = {"query", "records"},
    [OPERATION_CREATE_MAILBOX] = {"create_mailbox", NULL},
    [OPERATION_DELETE_MAILBOX] = {"delete_mailbox", NULL},
};

static void put_text(char out[REFUSAL_TEXT_MAX], struct view text) {
  size_t len = text.len < REFUSAL_TEXT_MAX - 1 ? text.len : REFUSAL_TEXT_MAX - 1;
  for (size_t i = 0; i < len; i++) {
    uint8_t c = text.data[i];
    bool digit = c >= '0' && c <= '9';
    out[i] = digit ? '#' : c < 0x20 || c >= 0x7f ? '?' : (char)c;
  }
  out[len] = '\0';
}

static void add(struct refusals *refusals, const char *text, uint64_t count) {
  for (uint32_t i = 0; i < refusals->used; i++) {
    if (strcmp(refusals->entry[i].text, text) != 0) continue;
    refusals->entry[i].count += count;
    return;
  }
  if (refusals->used == REFUSALS_MAX) {
    refusals->others += count;
    return;
  }
  memcpy(refusals->entry[refusals->used].text, text, strlen(text) + 1);
  refusals->entry[refusals->used++].count = count;
}

void refusals_add(struct refusals *refusals, struct view text, uint64_t count) {
  char line[REFUSAL_TEXT_MAX];
  put_text(line, text);
  add(refusals, line, count);
}

void refusals_merge(struct refusals *into, const struct refusals *from) {
  for (uint32_t i = 0; i < from->used; i++)
    add(into, from->entry[i].text, from->entry[i].count);
  into->others += from->others;
}

void operation_tally_merge(struct operation_tally *into, const struct operation_tally *from) {
  into->attempted += from->attempted;
  into->succeeded += from->succeeded;
  into->late += from->late;
  into->items += from->items;
  into->items_late += from->items_late;
  codes_merge(&into->failed, &from->failed);
  histogram_merge(&into->clock, &from->clock);
}

uint64_t operation_unanswered(const struct operation_tally *tally) {
  uint64_t answered = tally->succeeded + codes_total(&tally->failed);
  return tally->attempted > answered ? tally->attempted - answered : 0;
}
