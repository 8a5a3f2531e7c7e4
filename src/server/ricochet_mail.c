/* Messages: submission, alone and in batches, mailboxes as their owners read them, and their administration. */
#include "server/ricochet_call.h"

#include <limits.h>
#include <stdio.h>

#define DAY_MS INT64_C(86400000)
#define HOPS_MAX 10
#define FOLDER_MAX 256
#define MESSAGE_ID_MAX 256
#define MESSAGE_HEAD_MAX 4096 /* all of a message but its payload, every character an escape */
#define PAGE_DEFAULT 100
#define PAGE_MAX 1000
#define PAGE_BYTES_MAX (RICOCHET_FRAME_MAX - 64 * 1024)
#define FLAG_SEEN 1
#define FLAG_DELETED 4

bool ricochet_folder(struct view *folder) {
  if (folder->len == 0) *folder = view_str("inbox");
  if (folder->len > FOLDER_MAX || folder->data[0] == '/' || folder->data[folder->len - 1] == '/') return false;
  for (size_t i = 0; i < folder->len; i++) {
    if (folder->data[i] < 0x20 || folder->data[i] == 0x7f) return false;
    if (folder->data[i] == '/' && folder->data[i + 1] == '/') return false;
  }
  return true;
}

bool ricochet_make_mailbox(
    struct ricochet_call *call, struct view owner, struct view folder, struct ricochet_mailbox *out) {
  const struct ricochet_limits *limits = &call->service->limits;
  if (ricochet_store_mailbox(call->store, owner, folder, out)) return true;
  if (ricochet_store_count_mailboxes(call->store, owner) >= limits->mailboxes_each) return false;
  if (ricochet_store_count_mailboxes(call->store, (struct view){NULL, 0}) >= limits->mailboxes) return false;
  *out = (struct ricochet_mailbox){
      .created_ms = call->now_ms,
      .accessed_ms = call->now_ms,
      .max_messages = limits->max_messages,
      .retention_days = limits->retention_days,
      .owner = owner,
      .folder = folder,
      .type = view_str("private"),
  };
  ricochet_store_add_mailbox(call->store, out);
  return true;
}

/* --- submission --- */

/* Why a message is refused. */
struct refusal {
  int32_t status; /* 0: none given */
  const char *text;
};
static const struct refusal accepted = {0, NULL};

/* At most, on a page. */
static size_t written_bytes(const struct ricochet_message *message) {
  return (message->payload.len + 2) / 3 * 4 + MESSAGE_HEAD_MAX;
}

static struct refusal read_message(
    struct ricochet_call *call, const json_t *object, bool batch, struct ricochet_message *out) {
  *out = (struct ricochet_message){
      .message_id = ricochet_text(object, "messageId"),
      .recipient = ricochet_text(object, "recipientPeerId"),
      .sender = ricochet_text(object, "senderPeerId"),
      .folder = ricochet_text(object, "folderPath"),
      .priority = (uint32_t)ricochet_number(object, "priority", 0),
      .hop_count = (uint32_t)ricochet_number(object, "hopCount", 0),
      .flags = (uint32_t)ricochet_number(object, "flags", 0),
      .message_flags = (uint32_t)ricochet_number(object, "messageFlags", 0),
      .expiry_ms = ricochet_number(object, "expiryTimestamp", 0),
      .created_ms = ricochet_number(object, "createdTimestamp", 0),
      .persistent = ricochet_truth(object, "persistent"),
  };
  if (batch && out->sender.len == 0) return (struct refusal){RICOCHET_BAD_REQUEST, "senderPeerId is required"};
  if (!view_equal(out->sender, call->peer)) {
    return (struct refusal){RICOCHET_FORBIDDEN, "forwarding refused: sender is not the connected peer"};
  }
  if (!ricochet_is_peer_id(out->recipient)) return (struct refusal){RICOCHET_INTERNAL, "internal error"};
  if (!ricochet_bytes(call, object, "payload", &out->payload)) {
    return (struct refusal){RICOCHET_INTERNAL, "internal error"};
  }
  if (out->message_id.len == 0) return (struct refusal){RICOCHET_INTERNAL, "internal error"};
  if (out->message_id.len > MESSAGE_ID_MAX) return (struct refusal){RICOCHET_BAD_REQUEST, "message ID too long"};
  if (written_bytes(out) > PAGE_BYTES_MAX) return (struct refusal){RICOCHET_TOO_LARGE, "message too large"};
  if (out->priority > 3) return (struct refusal){RICOCHET_BAD_REQUEST, "invalid priority"};
  if (out->hop_count > HOPS_MAX) return (struct refusal){RICOCHET_BAD_REQUEST, "too many hops"};
  if (!ricochet_folder(&out->folder)) return (struct refusal){RICOCHET_BAD_REQUEST, "invalid folder path"};
  if (out->expiry_ms > 0 && out->expiry_ms <= call->now_ms) {
    return (struct refusal){RICOCHET_BAD_REQUEST, "message expired"};
  }
  int64_t last_ms = call->now_ms + call->service->limits.retention_days * DAY_MS;
  if (out->expiry_ms <= 0 || out->expiry_ms > last_ms) out->expiry_ms = last_ms;
  return accepted;
}

/* To somebody else's shared or public mailbox only with a grant. */
static bool may_write(struct ricochet_call *call, struct view owner, const struct ricochet_mailbox *mailbox) {
  if (view_is(mailbox->type, "private") || view_equal(owner, call->peer)) return true;
  struct view mode = ricochet_store_granted(call->store, mailbox->id, call->peer);
  return view_is(mode, "writeOnly") || view_is(mode, "readWrite");
}

static struct refusal deliver(struct ricochet_call *call, struct ricochet_message *message) {
  struct ricochet_mailbox mailbox;
  if (!ricochet_make_mailbox(call, message->recipient, message->folder, &mailbox)) {
    return (struct refusal){RICOCHET_FULL, "mailbox quota exceeded"};
  }
  bool is_private = view_is(mailbox.type, "private");
  if (!may_write(call, message->recipient, &mailbox)) {
    return (struct refusal){RICOCHET_FORBIDDEN, "unauthorized: no write access to mailbox"};
  }
  if (mailbox.count >= mailbox.max_messages) {
    mailbox.count -= ricochet_store_retain(call->store, mailbox.id, call->now_ms, mailbox.retention_count);
  }
  if (mailbox.count >= mailbox.max_messages) return (struct refusal){RICOCHET_FULL, "mailbox full"};
  if (message->expiry_ms > call->now_ms + mailbox.retention_days * DAY_MS) {
    message->expiry_ms = call->now_ms + mailbox.retention_days * DAY_MS;
  }
  message->sequence = mailbox.sequence + 1;
  if (!ricochet_store_add_message(call->store, mailbox.id, message)) {
    return (struct refusal){RICOCHET_INTERNAL, "internal error"};
  }
  mailbox.sequence++;
  mailbox.count++;
  mailbox.accessed_ms = call->now_ms;
  ricochet_store_update_mailbox(call->store, &mailbox);
  if (is_private && call->service->arrived) {
    call->service->arrived(call->service->context, message->recipient, message->folder);
  }
  return accepted;
}

static struct refusal submit(
    struct ricochet_call *call, const json_t *object, bool batch, struct ricochet_message *message) {
  struct refusal refusal = read_message(call, object, batch, message);
  return refusal.text ? refusal : deliver(call, message);
}

void ricochet_serve_submit(struct ricochet_call *call) {
  struct ricochet_message message;
  struct refusal refusal = submit(call, call->request, false, &message);
  if (refusal.text) {
    ricochet_refuse(call, refusal.status, refusal.text, -1);
    return;
  }
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_put_ack(&w, message.message_id, 0, NULL, -1);
  ricochet_end(&w);
}

/* One message of a batch; true when it was stored. */
static bool submit_item(struct ricochet_call *call, const json_t *object, struct ricochet_writer *w) {
  struct ricochet_message message;
  struct refusal refusal = {0, "malformed message"};
  if (json_is_object(object)) refusal = submit(call, object, true, &message);
  struct view id = refusal.text ? (struct view){NULL, 0} : message.message_id;
  ricochet_put_ack(w, id, refusal.status, refusal.text, -1);
  return !refusal.text;
}

void ricochet_serve_batch(struct ricochet_call *call) {
  const json_t *messages = ricochet_field(call->request, "messages");
  size_t total = json_array_size(messages), count = 0;
  if (total < 1 || total > RICOCHET_BATCH_MAX) {
    ricochet_refuse(call, 0, total < 1 ? "empty batch" : "batch exceeds 100 messages", -1);
    return;
  }
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_open(&w, NULL, '{');
  ricochet_open(&w, "acks", '[');
  for (size_t i = 0; i < total; i++)
    count += submit_item(call, json_array_get(messages, i), &w);
  ricochet_close(&w, ']');
  ricochet_put_int(&w, "accepted", (int64_t)count);
  ricochet_put_int(&w, "total", (int64_t)total);
  ricochet_close(&w, '}');
  ricochet_end(&w);
}

/* --- access --- */

struct page {
  struct ricochet_writer w;
  uint32_t count, max;
  bool has_more;
};

static bool visit_message(void *context, const struct ricochet_message *message) {
  struct page *page = context;
  bool is_full = page->count > 0 && page->w.out->len - page->w.start + written_bytes(message) > PAGE_BYTES_MAX;
  if (page->count == page->max || is_full) {
    page->has_more = true;
    return false;
  }
  size_t part = ricochet_begin_part(&page->w);
  ricochet_put_message(&page->w, message);
  ricochet_end_part(&page->w, part);
  page->count++;
  return true;
}

/* The metadata stands in front and is known last: messages go into a buffer of their own. */
static void write_page(struct ricochet_call *call, const struct ricochet_range *range, uint32_t max) {
  struct buf messages = {0};
  struct page page = {.w = {.out = &messages}, .max = max};
  if (range->mailbox) ricochet_store_walk_messages(call->store, range, visit_message, &page);
  struct ricochet_writer w = ricochet_begin(call->out);
  size_t part = ricochet_begin_part(&w);
  ricochet_open(&w, NULL, '{');
  ricochet_put_bool(&w, "hasMore", page.has_more);
  ricochet_put_int(&w, "messageCount", page.count);
  ricochet_close(&w, '}');
  ricochet_end_part(&w, part);
  ricochet_raw(&w, view_of(messages.data, messages.len));
  w.failed |= page.w.failed;
  ricochet_end(&w);
  buf_free(&messages);
}

static bool may_read(struct ricochet_call *call, const struct ricochet_mailbox *mailbox) {
  if (view_is(mailbox->type, "public")) return true;
  if (view_is(mailbox->type, "private")) return false;
  struct view mode = ricochet_store_granted(call->store, mailbox->id, call->peer);
  return view_is(mode, "readOnly") || view_is(mode, "readWrite");
}

static void retrieve(struct ricochet_call *call) {
  const json_t *request = call->request;
  struct view owner = ricochet_text(request, "peerId"), folder = ricochet_text(request, "folderPath");
  struct ricochet_mailbox mailbox = {0};
  if (!ricochet_is_peer_id(owner)) {
    ricochet_refuse(call, 0, "invalid peer ID", -1);
    return;
  }
  if (!ricochet_folder(&folder)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid folder path", -1);
    return;
  }
  bool is_own = view_equal(owner, call->peer);
  bool exists = ricochet_store_mailbox(call->store, owner, folder, &mailbox);
  if (!exists && !is_own) {
    ricochet_refuse(call, RICOCHET_NOT_FOUND, "mailbox not found", -1);
    return;
  }
  if (!is_own && !may_read(call, &mailbox)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: no read access to mailbox", -1);
    return;
  }
  int64_t max = ricochet_number(request, "maxMessages", PAGE_DEFAULT);
  struct ricochet_range range = {
      .mailbox = exists ? mailbox.id : 0,
      .from_sequence = ricochet_number(request, "fromSequence", 0),
      .min_priority = ricochet_number(request, "minPriority", -1),
      .now_ms = call->now_ms,
  };
  write_page(call, &range, max < 1 ? PAGE_DEFAULT : max > PAGE_MAX ? PAGE_MAX : (uint32_t)max);
}

static void answer_count(struct ricochet_call *call, const char *name, int64_t count) {
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_bool(&w, "success", true);
  if (name) ricochet_put_int(&w, name, count);
  ricochet_close(&w, '}');
  ricochet_end(&w);
}

/* Delivered messages go, unless they are persistent: those are seen. */
static uint32_t mark_delivered(struct ricochet_call *call, struct view id, const struct ricochet_kept *kept) {
  if (!kept->persistent) return ricochet_store_delete_message(call->store, id);
  ricochet_store_flag_message(call->store, id, kept->message_flags | FLAG_SEEN);
  return 1;
}

/* markDelivered and deleteMessages: what is not the caller's is passed over. */
static void settle_messages(struct ricochet_call *call, bool delivered) {
  const json_t *ids = ricochet_field(call->request, "messageIds");
  uint32_t count = 0;
  for (size_t i = 0; i < json_array_size(ids); i++) {
    const json_t *element = json_array_get(ids, i);
    struct ricochet_kept kept;
    if (!json_is_string(element)) continue;
    struct view id = view_of(json_string_value(element), json_string_length(element));
    if (!ricochet_store_message(call->store, id, &kept) || !view_equal(kept.owner, call->peer)) continue;
    count += delivered ? mark_delivered(call, id, &kept) : ricochet_store_delete_message(call->store, id);
  }
  answer_count(call, delivered ? "updatedCount" : "deletedCount", count);
}

static void refuse_plainly(struct ricochet_call *call, const char *text, int32_t status) {
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_bool(&w, "success", false);
  ricochet_put_text(&w, "errorMessage", view_str(text));
  if (status) ricochet_put_int(&w, "status", status);
  ricochet_close(&w, '}');
  ricochet_end(&w);
  call->status = status;
}

static void update_flags(struct ricochet_call *call) {
  struct view id = ricochet_text(call->request, "messageId");
  struct ricochet_kept kept;
  if (!ricochet_store_message(call->store, id, &kept) || !view_equal(kept.owner, call->peer)) {
    refuse_plainly(call, "message not found", 0);
    return;
  }
  uint32_t flags = kept.message_flags;
  flags |= (uint32_t)ricochet_number(call->request, "addFlags", 0);
  flags &= ~(uint32_t)ricochet_number(call->request, "removeFlags", 0);
  ricochet_store_flag_message(call->store, id, flags);
  answer_count(call, "newFlags", flags);
}

static void expunge(struct ricochet_call *call) {
  struct view owner = ricochet_text(call->request, "peerId"), folder = ricochet_text(call->request, "folderPath");
  struct ricochet_mailbox mailbox;
  if (owner.len == 0) owner = call->peer;
  if (!view_equal(owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the mailbox owner", -1);
  } else if (!ricochet_folder(&folder)) {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "invalid folder path", -1);
  } else if (!ricochet_store_mailbox(call->store, owner, folder, &mailbox)) {
    answer_count(call, "deletedCount", 0);
  } else {
    answer_count(call, "deletedCount", ricochet_store_expunge(call->store, mailbox.id, FLAG_DELETED));
  }
}

void ricochet_serve_access(struct ricochet_call *call) {
  struct view operation = ricochet_text(call->request, "operationType");
  if (operation.len == 0 || view_is(operation, "retrieve")) {
    retrieve(call);
  } else if (view_is(operation, "markDelivered")) {
    settle_messages(call, true);
  } else if (view_is(operation, "deleteMessages")) {
    settle_messages(call, false);
  } else if (view_is(operation, "updateFlags")) {
    update_flags(call);
  } else if (view_is(operation, "expunge")) {
    expunge(call);
  } else {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "unknown operation", -1);
  }
}
