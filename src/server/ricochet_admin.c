/* Administration of mailboxes. */
#include "server/ricochet_call.h"

#include <stdio.h>

/* What a request names; the Dart client's names are taken too. */
struct subject {
  struct view owner, folder, type, grantee;
  struct ricochet_mailbox mailbox;
  bool exists;
};

static struct view either(const json_t *request, const char *name, const char *other) {
  struct view text = ricochet_text(request, name);
  return text.len > 0 ? text : ricochet_text(request, other);
}

/* The folder of "peer/folder", when none is named otherwise. */
static void take_address(struct subject *subject, struct view address) {
  const uint8_t *slash = address.len > 0 ? memchr(address.data, '/', address.len) : NULL;
  if (!slash || subject->folder.len > 0) return;
  subject->folder = view_of(slash + 1, address.len - (size_t)(slash - address.data) - 1);
}

/* As the original refuses what is wrong with the arguments: without a status. */
static void refuse(struct ricochet_call *call, const char *text) {
  ricochet_refuse(call, 0, text, -1);
}

static void answer(struct ricochet_call *call) {
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_raw(&w, view_str("{\"success\":true}"));
  ricochet_end(&w);
}

/* A setting that is given must be above 0; beyond the ceiling it is lowered. */
static bool take_setting(const json_t *request, const char *name, uint32_t ceiling, uint32_t *setting) {
  if (!ricochet_field(request, name)) return true;
  int64_t value = ricochet_number(request, name, 0);
  if (value <= 0) return false;
  *setting = value > ceiling ? ceiling : (uint32_t)value;
  return true;
}

static bool take_settings(struct ricochet_call *call, struct ricochet_mailbox *mailbox) {
  const struct ricochet_limits *limits = &call->service->limits;
  return take_setting(call->request, "maxMessages", limits->max_messages, &mailbox->max_messages) &&
         take_setting(call->request, "retentionDays", limits->retention_days, &mailbox->retention_days) &&
         take_setting(call->request, "retentionCount", limits->max_messages, &mailbox->retention_count);
}

static bool is_type(struct view type) {
  return view_is(type, "private") || view_is(type, "shared") || view_is(type, "public");
}

static void create(struct ricochet_call *call, struct subject *subject) {
  const struct ricochet_limits *limits = &call->service->limits;
  struct ricochet_mailbox made = {
      .created_ms = call->now_ms,
      .max_messages = limits->max_messages,
      .retention_days = limits->retention_days,
      .owner = subject->owner,
      .folder = subject->folder,
      .type = subject->type.len > 0 ? subject->type : view_str("private"),
  };
  if (!is_type(made.type) || !take_settings(call, &made)) {
    refuse(call, "invalid mailbox settings");
  } else if (subject->exists) {
    answer(call);
  } else if (ricochet_store_count_mailboxes(call->store, subject->owner) >= limits->mailboxes_each ||
             ricochet_store_count_mailboxes(call->store, (struct view){NULL, 0}) >= limits->mailboxes) {
    ricochet_refuse(call, RICOCHET_FULL, "mailbox quota exceeded", -1);
  } else {
    ricochet_store_add_mailbox(call->store, &made);
    answer(call);
  }
}

static void delete_mailbox(struct ricochet_call *call, struct subject *subject) {
  if (!subject->exists) {
    ricochet_refuse(call, RICOCHET_INTERNAL, "failed to delete mailbox: internal error", -1);
    return;
  }
  ricochet_store_delete_mailbox(call->store, subject->mailbox.id);
  answer(call);
}

static void update_config(struct ricochet_call *call, struct subject *subject) {
  if (!subject->exists) {
    refuse(call, "mailbox not found");
  } else if (!take_settings(call, &subject->mailbox)) {
    refuse(call, "invalid mailbox settings");
  } else {
    ricochet_store_update_mailbox(call->store, &subject->mailbox);
    answer(call);
  }
}

static void put_mailbox(void *context, const struct ricochet_mailbox *mailbox) {
  struct ricochet_writer *w = context;
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "folderPath", mailbox->folder);
  ricochet_put_text(w, "type", mailbox->type);
  ricochet_put_int(w, "maxMessages", mailbox->max_messages);
  ricochet_put_int(w, "retentionDays", mailbox->retention_days);
  ricochet_put_int(w, "createdAt", mailbox->created_ms);
  ricochet_close(w, '}');
}

static void put_grant(void *context, struct view peer, struct view mode, int64_t granted_ms) {
  struct ricochet_writer *w = context;
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "peerId", peer);
  ricochet_put_text(w, "accessMode", mode);
  ricochet_put_int(w, "grantedAt", granted_ms);
  ricochet_close(w, '}');
}

static struct ricochet_writer begin_answer(struct ricochet_call *call) {
  struct ricochet_writer w = ricochet_begin(call->out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_bool(&w, "success", true);
  return w;
}

static void end_answer(struct ricochet_writer *w, char bracket) {
  ricochet_close(w, bracket);
  ricochet_close(w, '}');
  ricochet_end(w);
}

static void list_mailboxes(struct ricochet_call *call, struct subject *subject) {
  struct ricochet_writer w = begin_answer(call);
  ricochet_open(&w, "mailboxes", '[');
  ricochet_store_list_mailboxes(call->store, subject->owner, put_mailbox, &w);
  end_answer(&w, ']');
}

static void list_grants(struct ricochet_call *call, struct subject *subject) {
  if (!subject->exists) {
    refuse(call, "mailbox not found");
    return;
  }
  struct ricochet_writer w = begin_answer(call);
  ricochet_open(&w, "acl", '[');
  ricochet_store_list_grants(call->store, subject->mailbox.id, put_grant, &w);
  end_answer(&w, ']');
}

/* "read_only" is "readOnly", as is nothing. */
static const char *access_mode(struct view mode) {
  static const char *const modes[][2] = {
      {"readOnly", "read_only"}, {"writeOnly", "write_only"}, {"readWrite", "read_write"}};
  if (mode.len == 0) return modes[0][0];
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (view_is(mode, modes[i][0]) || view_is(mode, modes[i][1])) return modes[i][0];
  }
  return NULL;
}

static void change_grant(struct ricochet_call *call, struct subject *subject, bool grants) {
  const char *mode = access_mode(ricochet_text(call->request, "accessMode"));
  if (!ricochet_is_peer_id(subject->grantee) || (grants && !mode)) {
    refuse(call, "invalid grantee or access mode");
  } else if (!subject->exists) {
    refuse(call, "mailbox not found");
  } else if (grants) {
    ricochet_store_grant(call->store, subject->mailbox.id, subject->grantee, view_str(mode), call->now_ms);
    answer(call);
  } else {
    ricochet_store_revoke(call->store, subject->mailbox.id, subject->grantee);
    answer(call);
  }
}

static void mailbox_info(struct ricochet_call *call, struct subject *subject) {
  const struct ricochet_mailbox *mailbox = &subject->mailbox;
  char address[512];
  if (!subject->exists) {
    refuse(call, "mailbox not found");
    return;
  }
  int len = snprintf(address, sizeof address, "%.*s/%.*s", (int)subject->owner.len, (const char *)subject->owner.data,
      (int)subject->folder.len, (const char *)subject->folder.data);
  struct ricochet_writer w = begin_answer(call);
  ricochet_open(&w, "data", '{');
  ricochet_put_text(&w, "address", view_of(address, (size_t)len));
  ricochet_put_text(&w, "type", mailbox->type);
  ricochet_put_int(&w, "messageCount", mailbox->count);
  ricochet_put_int(&w, "createdAt", mailbox->created_ms);
  ricochet_put_int(&w, "lastAccessedAt", mailbox->accessed_ms);
  ricochet_put_int(&w, "maxMessages", mailbox->max_messages);
  ricochet_put_int(&w, "retentionDays", mailbox->retention_days);
  if (mailbox->retention_count > 0) ricochet_put_int(&w, "retentionCount", mailbox->retention_count);
  end_answer(&w, '}');
}

static void capacity(struct ricochet_call *call) {
  uint64_t total = call->service->limits.storage_bytes, used = ricochet_store_bytes(call->store);
  uint64_t left = used < total ? total - used : 0;
  char health[32], sampled[40];
  ricochet_time(call->now_ms, sampled);
  struct ricochet_writer w = begin_answer(call);
  snprintf(health, sizeof health, "%.6f", total > 0 ? (double)left / (double)total : 0);
  ricochet_open(&w, "capacity", '{');
  ricochet_put_int(&w, "totalStorageBytes", (int64_t)total);
  ricochet_put_int(&w, "usedStorageBytes", (int64_t)used);
  ricochet_put_int(&w, "availableStorageBytes", (int64_t)left);
  ricochet_put_int(&w, "activeMailboxes", ricochet_store_count_mailboxes(call->store, (struct view){NULL, 0}));
  ricochet_put_json(&w, "healthScore", view_str(health));
  ricochet_put_text(&w, "sampledAt", view_str(sampled));
  end_answer(&w, '}');
}

static void run_operation(struct ricochet_call *call, struct view operation, struct subject *subject) {
  if (view_is(operation, "createMailbox")) {
    create(call, subject);
  } else if (view_is(operation, "deleteMailbox")) {
    delete_mailbox(call, subject);
  } else if (view_is(operation, "updateConfig")) {
    update_config(call, subject);
  } else if (view_is(operation, "getMailboxInfo")) {
    mailbox_info(call, subject);
  } else if (view_is(operation, "listACL")) {
    list_grants(call, subject);
  } else if (view_is(operation, "grantAccess") || view_is(operation, "revokeAccess")) {
    change_grant(call, subject, view_is(operation, "grantAccess"));
  } else {
    ricochet_refuse(call, RICOCHET_BAD_REQUEST, "unknown operation", -1);
  }
}

void ricochet_serve_admin(struct ricochet_call *call) {
  const json_t *request = call->request;
  struct view operation = ricochet_text(request, "operationType");
  struct subject subject = {
      .owner = ricochet_text(request, "ownerPeerId"),
      .folder = ricochet_text(request, "folderPath"),
      .type = either(request, "mailboxType", "type"),
      .grantee = either(request, "granteePeerId", "targetPeerId"),
  };
  take_address(&subject, ricochet_text(request, "address"));
  if (subject.owner.len == 0) subject.owner = call->peer;
  if (view_is(operation, "queryCapacity")) {
    capacity(call);
  } else if (!view_equal(subject.owner, call->peer)) {
    ricochet_refuse(call, RICOCHET_FORBIDDEN, "unauthorized: not the mailbox owner", -1);
  } else if (view_is(operation, "listMailboxes")) {
    list_mailboxes(call, &subject);
  } else if (subject.folder.len == 0) {
    refuse(call, "folderPath is required");
  } else if (!ricochet_folder(&subject.folder)) {
    refuse(call, "invalid folder path");
  } else {
    subject.exists = ricochet_store_mailbox(call->store, subject.owner, subject.folder, &subject.mailbox);
    run_operation(call, operation, &subject);
  }
}
