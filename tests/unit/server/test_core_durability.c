/* What the core promises about crashes, full disks and late acks. */
#include "unit/server/core_rig.h"

#include "base/rng.h"
#include "server/store.h"
#include "server/timeline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- kill -9 ---- */

enum { KILL_ROUNDS = 6, SENDERS = 2 };

/* What the child reports for each ack. */
struct report {
  char content[32], msg_id[24];
  int64_t seq;
};

static void child_publish(struct rig *rig, int report_fd, uint32_t round) {
  static const char *const members[] = {"alice", "carol", "bob"};
  rig_open(rig);
  struct session_ref senders[SENDERS] = {rig_user(rig, "alice", 0), rig_user(rig, "carol", 0)};
  rig_make_group(rig, "grp1", members, 3);
  for (uint32_t i = 0;; i++) {
    /* Several in flight, so that batches hold more than one. */
    struct report reports[8] = {0};
    for (uint32_t j = 0; j < 8; j++) {
      snprintf(reports[j].content, sizeof reports[j].content, "%u-%u-%u", round, i, j);
      bool group = j % 4 == 3;
      rig_post(
          rig, senders[j % SENDERS], group ? "g_msg" : "p_msg", group ? "grp1" : "bob", reports[j].content, 10, "");
    }
    for (uint32_t j = 0; j < 8; j++) {
      struct rig_ack ack = rig_ack(rig, 0);
      if (ack.code != JUGGLE_OK) _exit(3);
      memcpy(reports[j].msg_id, ack.msg_id, sizeof ack.msg_id);
      reports[j].seq = ack.seq;
      if (write(report_fd, &reports[j], sizeof reports[j]) != sizeof reports[j]) _exit(4);
    }
    usleep(2000);
  }
}

struct seen {
  struct rig_message *messages;
  uint32_t count, capacity;
};

static void seen_add(struct seen *seen, const struct rig_message *message) {
  if (seen->count == seen->capacity) {
    seen->capacity = seen->capacity ? 2 * seen->capacity : 256;
    seen->messages = realloc(seen->messages, seen->capacity * sizeof *seen->messages);
    assert_non_null(seen->messages);
  }
  seen->messages[seen->count++] = *message;
}

static int by_msg_id(const void *a, const void *b) {
  const struct rig_message *x = a, *y = b;
  return strcmp(x->msg_id, y->msg_id);
}

/* In messages sorted by id. */
static const struct rig_message *seen_find(const struct seen *seen, const struct report *report) {
  struct rig_message wanted = {0};
  memcpy(wanted.msg_id, report->msg_id, sizeof wanted.msg_id);
  return bsearch(&wanted, seen->messages, seen->count, sizeof *seen->messages, by_msg_id);
}

static void read_inbox(struct rig *rig, struct session_ref bob, struct seen *seen) {
  struct rig_page page;
  int64_t cursor_ms = 0;
  do {
    assert_int_equal(rig_sync(rig, bob, "bob", cursor_ms, &page), JUGGLE_OK);
    for (uint32_t i = 0; i < page.count; i++) {
      assert_true(page.messages[i].time_ms > cursor_ms);
      cursor_ms = page.messages[i].time_ms;
      seen_add(seen, &page.messages[i]);
    }
  } while (!page.is_finished);
}

static void read_history(
    struct rig *rig, struct session_ref bob, int32_t channel, const char *target, struct seen *seen) {
  struct rig_page page;
  int64_t cursor_ms = 0, last_seq = 0;
  do {
    assert_int_equal(rig_history(rig, bob, channel, target, cursor_ms, 200, 1, &page), JUGGLE_OK);
    for (uint32_t i = 0; i < page.count; i++) {
      assert_true(page.messages[i].time_ms > cursor_ms);
      assert_int_equal(page.messages[i].seq, last_seq + 1); /* no gap, whatever was lost unacked */
      cursor_ms = page.messages[i].time_ms;
      last_seq = page.messages[i].seq;
      seen_add(seen, &page.messages[i]);
    }
  } while (!page.is_finished);
}

static void kill_nine_loses_nothing_acked(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  rig_close(&rig);
  struct rng rng;
  rng_seed(&rng, (uint64_t)getpid());
  struct report *reports = NULL;
  uint32_t acked = 0;
  for (uint32_t round = 0; round < KILL_ROUNDS; round++) {
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      close(pipe_fds[0]);
      child_publish(&rig, pipe_fds[1], round);
      _exit(5);
    }
    close(pipe_fds[1]);
    /* The longer ones see positions written behind and checkpoints move. */
    uint64_t kill_ns = clock_now_ns() + (30 + rng_below(&rng, 1500)) * NS_PER_MS;
    bool killed = false;
    struct report report;
    while (read(pipe_fds[0], &report, sizeof report) == sizeof report) {
      reports = realloc(reports, (acked + 1) * sizeof *reports);
      assert_non_null(reports);
      reports[acked++] = report;
      if (killed || clock_now_ns() < kill_ns) continue;
      kill(child, SIGKILL);
      killed = true;
    }
    close(pipe_fds[0]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  }
  rig_open(&rig);
  struct session_ref bob = rig_user(&rig, "bob", 0);
  struct seen inbox = {0}, history = {0};
  read_inbox(&rig, bob, &inbox);
  read_history(&rig, bob, JUGGLE_PRIVATE, "alice", &history);
  read_history(&rig, bob, JUGGLE_PRIVATE, "carol", &history);
  read_history(&rig, bob, JUGGLE_GROUP, "grp1", &history);
  assert_true(acked > KILL_ROUNDS);
  qsort(inbox.messages, inbox.count, sizeof *inbox.messages, by_msg_id);
  qsort(history.messages, history.count, sizeof *history.messages, by_msg_id);
  for (uint32_t i = 0; i < acked; i++) {
    const struct rig_message *message = seen_find(&inbox, &reports[i]);
    if (!message) fail_msg("acked message %s is not in the inbox", reports[i].content);
    assert_string_equal(message->content, reports[i].content);
    assert_int_equal(message->seq, reports[i].seq);
    message = seen_find(&history, &reports[i]);
    if (!message) fail_msg("acked message %s is not in the history", reports[i].content);
    assert_string_equal(message->content, reports[i].content);
  }
  /* Every message of the log is counted once, acked or not. */
  assert_int_equal(inbox.count, history.count);
  assert_int_equal(rig_total_unread(&rig, bob, "bob"), history.count);
  free(inbox.messages);
  free(history.messages);
  free(reports);
  rig_end(&rig);
}

/* ---- Acks and commits ---- */

/* Reads the file as another program would: only what is committed is there. */
static int64_t rows_on_disk(const char *folder, const char *msg_id) {
  char path[128];
  snprintf(path, sizeof path, "%s/musterd.db", folder);
  sqlite3 *db;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  sqlite3_stmt *statement;
  assert_int_equal(
      sqlite3_prepare_v2(db, "SELECT count(*) FROM messages WHERE msg_id=?", -1, &statement, NULL), SQLITE_OK);
  sqlite3_bind_text(statement, 1, msg_id, -1, SQLITE_STATIC);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  int64_t count = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return count;
}

static void stop_commits_what_was_posted(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  struct session_ref alice = rig_user(&rig, "alice", 0);
  enum { COUNT = 3000 };
  for (int i = 0; i < COUNT; i++)
    rig_post(&rig, alice, "p_msg", "bob", "x", 10, "");
  core_stop(rig.core);
  uint32_t acks = 0;
  char last[24] = "";
  rig_take(&rig, 0);
  for (struct out *out = rig.waiting[0]; out; out = out->next) {
    if (out->kind != OUT_PUBLISH_ACK) continue;
    assert_int_equal(out->code, JUGGLE_OK);
    memcpy(last, out->msg_id, sizeof last);
    acks++;
  }
  assert_int_equal(acks, COUNT);
  assert_int_equal(rows_on_disk(rig.folder, last), 1);
  rig_drop_results(&rig);
  for (int i = 0; i < RIG_GATEWAYS; i++)
    gateway_port_close(&rig.ports[i]);
  rig_open(&rig);
  struct session_ref bob = rig_user(&rig, "bob", 0);
  assert_int_equal(rig_total_unread(&rig, bob, "bob"), COUNT);
  rig_end(&rig);
}

static int32_t stopped_core(struct core *core, void *argument) {
  (void)core;
  (void)argument;
  return JUGGLE_OK;
}

static void received_policy_works_and_is_kept_on_stop(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  rig_close(&rig);
  rig.config.ack = ACK_RECEIVED;
  rig_open(&rig);
  struct session_ref alice = rig_user(&rig, "alice", 0);
  struct rig_ack ack = {0};
  for (int i = 0; i < 100; i++)
    ack = rig_publish(&rig, alice, "p_msg", "bob", "x", 10, "");
  assert_int_equal(ack.seq, 100);
  int32_t code;
  assert_int_equal(core_call(rig.core, stopped_core, NULL, &code), STATUS_OK);
  rig_restart(&rig);
  struct session_ref bob = rig_user(&rig, "bob", 0);
  assert_int_equal(rig_total_unread(&rig, bob, "bob"), 100);
  rig_end(&rig);
}

/* ---- A disk that takes no more ---- */

/* In a child, since the limit on file sizes is the process's. Exit code 0: as promised. */
static void publish_until_full(struct rig *rig, int report_fd) {
  signal(SIGXFSZ, SIG_IGN);
  rig_open(rig);
  struct session_ref alice = rig_user(rig, "alice", 0);
  struct rlimit limit = {.rlim_cur = 600 * 1024, .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(10);
  static char content[900];
  memset(content, 'x', sizeof content - 1);
  for (uint32_t i = 0; i < 100000; i++) {
    uint8_t data[1024];
    uint32_t len = rig_up_msg(data, content, 10, "");
    enum status status =
        core_post_publish(rig->core, alice, (int32_t)i, view_str("p_msg"), view_str("bob"), view_of(data, len));
    if (status == STATUS_IO) break;
    if (status != STATUS_OK) _exit(11);
    struct out *out = NULL;
    while (!out && !core_failed(rig->core, NULL)) {
      struct pollfd readable = {.fd = rig->ports[0].event_fd, .events = POLLIN};
      poll(&readable, 1, 10);
      out = gateway_port_take(&rig->ports[0]);
    }
    if (!out) break;
    if (out->code == JUGGLE_OK && write(report_fd, out->msg_id, sizeof out->msg_id) < 0) _exit(12);
    out_free(out);
  }
  struct err err = {0};
  if (!core_failed(rig->core, &err)) _exit(13);
  if (!strstr(err.text, "musterd.db")) _exit(14);
  struct out *out = gateway_port_take(&rig->ports[0]);
  if (out) _exit(15); /* an ack after the failure */
  int32_t code;
  if (core_call(rig->core, stopped_core, NULL, &code) != STATUS_IO) _exit(16);
  core_stop(rig->core);
  _exit(0);
}

static void full_disk_stops_acks(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  rig_close(&rig);
  int pipe_fds[2];
  assert_int_equal(pipe(pipe_fds), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    close(pipe_fds[0]);
    publish_until_full(&rig, pipe_fds[1]);
  }
  close(pipe_fds[1]);
  char msg_id[24], last[24] = "";
  uint32_t acked = 0;
  while (read(pipe_fds[0], msg_id, sizeof msg_id) == sizeof msg_id) {
    memcpy(last, msg_id, sizeof last);
    acked++;
  }
  close(pipe_fds[0]);
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  assert_true(acked > 10);
  assert_int_equal(rows_on_disk(rig.folder, last), 1);
  rig_open(&rig);
  struct session_ref bob = rig_user(&rig, "bob", 0);
  assert_true(rig_total_unread(&rig, bob, "bob") >= acked);
  rig_end(&rig);
}

/* ---- Opening ---- */

static void a_folder_serves_one_server(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  struct core *second = NULL;
  struct err err = {0};
  assert_int_not_equal(core_start(&second, &rig.config, rig.port_list, RIG_GATEWAYS, &err), STATUS_OK);
  assert_null(second);
  assert_non_null(strstr(err.text, "in use"));
  rig_end(&rig);
}

static void newer_schema_is_refused(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  rig_close(&rig);
  char path[128];
  snprintf(path, sizeof path, "%s/musterd.db", rig.folder);
  sqlite3 *db;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  assert_int_equal(
      sqlite3_exec(db, "UPDATE meta SET value=99 WHERE name='schema_version'", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  struct store *store = NULL;
  struct err err = {0};
  assert_int_equal(store_open(&store, rig.folder, true, &err), STATUS_USAGE);
  assert_null(store);
  assert_non_null(strstr(err.text, "99"));
  rig_remove(&rig);
}

static void bad_folder_is_named(void **state) {
  (void)state;
  struct store *store = NULL;
  struct err err = {0};
  assert_int_equal(store_open(&store, "/proc/nowhere/at-all", true, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "/proc/nowhere/at-all"));
}

/* ---- Many threads ---- */

struct poster {
  struct rig *rig;
  struct session_ref from;
  uint32_t count;
};

static void *post_many(void *argument) {
  struct poster *poster = argument;
  uint8_t data[256];
  uint32_t len = rig_up_msg(data, "x", 10, "");
  uint32_t posted = 0;
  while (posted < poster->count) {
    enum status status = core_post_publish(
        poster->rig->core, poster->from, (int32_t)posted, view_str("p_msg"), view_str("bob"), view_of(data, len));
    if (status == STATUS_OK)
      posted++;
    else if (status == STATUS_MEMORY)
      usleep(100);
    else
      return NULL;
  }
  return poster;
}

static void threads_post_in_order(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  enum { EACH = 4000 };
  struct poster posters[RIG_GATEWAYS];
  pthread_t threads[RIG_GATEWAYS];
  for (int i = 0; i < RIG_GATEWAYS; i++)
    posters[i] = (struct poster){&rig, rig_user(&rig, i ? "carol" : "alice", (uint16_t)i), EACH};
  for (int i = 0; i < RIG_GATEWAYS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
  for (uint32_t gateway = 0; gateway < RIG_GATEWAYS; gateway++) {
    for (int32_t i = 0; i < EACH; i++) {
      struct out *out = rig_next_of(&rig, gateway, OUT_PUBLISH_ACK);
      assert_int_equal(out->code, JUGGLE_OK);
      assert_int_equal(out->index, i);
      assert_int_equal(out->seq, i + 1);
      out_free(out);
    }
  }
  for (int i = 0; i < RIG_GATEWAYS; i++) {
    void *returned;
    assert_int_equal(pthread_join(threads[i], &returned), 0);
    assert_non_null(returned);
  }
  assert_int_equal(core_stats(rig.core)->rows, 2 * EACH);
  rig_end(&rig);
}

/* ---- Damage ---- */

static void change_store(const struct rig *rig, const char *sql) {
  char path[128];
  sqlite3 *db;
  snprintf(path, sizeof path, "%s/musterd.db", rig->folder);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

/* Numbers at the end of their range must not overflow what is counted up from them. */
static void extreme_numbers_in_the_store_do_no_harm(void **state) {
  static const char *const changes[] = {
      "UPDATE messages SET time_ms=9223372036854775807, seq=9223372036854775807, at_ms=9223372036854775807",
      "UPDATE user_conversations SET unread_index=9223372036854775807, sort_ms=9223372036854775807",
      /* the user, then time and unread index as far away as varints can say */
      "UPDATE messages SET recipients=x'04feffffffffffffffff01feffffffffffffffff01'",
      "UPDATE messages SET time_ms=-9223372036854775807-1, at_ms=-9223372036854775807-1",
  };
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    struct rig rig;
    rig_start(&rig);
    assert_int_equal(rig_publish(&rig, rig_user(&rig, "alice", 0), "p_msg", "bob", "x", 10, "").code, JUGGLE_OK);
    rig_close(&rig);
    change_store(&rig, changes[i]);
    rig_open(&rig);
    struct rig_ack ack = rig_publish(&rig, rig_user(&rig, "alice", 0), "p_msg", "bob", "y", 10, "");
    assert_int_equal(ack.code, JUGGLE_OK);
    assert_true(ack.timestamp_ms > 0 && ack.seq > 0);
    rig_end(&rig);
  }
}

/* Rows that only a damaged file has: not read, and the start says so. */
static void rows_without_sense_are_refused(void **state) {
  static const char *const changes[] = {
      "UPDATE users SET user_id=zeroblob(100000)",
      "UPDATE users SET user_id=''",
      "UPDATE users SET num=num+100000000",
      "UPDATE messages SET body=x'ffff'",
      "UPDATE messages SET msg_id=''",
      "UPDATE messages SET conversation=9",
      "UPDATE messages SET sender=9",
  };
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    struct rig rig;
    rig_start(&rig);
    assert_int_equal(rig_publish(&rig, rig_user(&rig, "alice", 0), "p_msg", "bob", "x", 10, "").code, JUGGLE_OK);
    rig_close(&rig);
    change_store(&rig, changes[i]);
    struct err err = {0};
    for (int j = 0; j < RIG_GATEWAYS; j++)
      assert_int_equal(gateway_port_open(&rig.ports[j], &err), STATUS_OK);
    assert_int_not_equal(core_start(&rig.core, &rig.config, rig.port_list, RIG_GATEWAYS, &err), STATUS_OK);
    assert_non_null(strstr(err.text, "makes no sense"));
    for (int j = 0; j < RIG_GATEWAYS; j++)
      gateway_port_close(&rig.ports[j]);
    rig_remove(&rig);
  }
}

static void a_damaged_file_is_named_with_what_to_do(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  rig_close(&rig);
  char path[128];
  snprintf(path, sizeof path, "%s/musterd.db", rig.folder);
  assert_int_equal(truncate(path, 5000), 0);
  struct err err = {0};
  for (int i = 0; i < RIG_GATEWAYS; i++)
    assert_int_equal(gateway_port_open(&rig.ports[i], &err), STATUS_OK);
  assert_int_equal(core_start(&rig.core, &rig.config, rig.port_list, RIG_GATEWAYS, &err), STATUS_IO);
  assert_non_null(strstr(err.text, path));
  assert_non_null(strstr(err.text, "malformed; restore it from a backup or choose another data folder"));
  for (int i = 0; i < RIG_GATEWAYS; i++)
    gateway_port_close(&rig.ports[i]);
  rig_remove(&rig);
}

/* ---- History, whose order is written behind ---- */

static void expect_history(struct rig *rig, uint32_t with_bob, uint32_t with_carol) {
  struct session_ref alice = rig_user(rig, "alice", 0);
  struct seen bob = {0}, carol = {0};
  read_history(rig, alice, JUGGLE_PRIVATE, "bob", &bob);
  read_history(rig, alice, JUGGLE_PRIVATE, "carol", &carol);
  assert_int_equal(bob.count, with_bob);
  assert_int_equal(carol.count, with_carol);
  free(bob.messages);
  free(carol.messages);
}

static void history_is_whole_at_any_time(void **state) {
  (void)state;
  enum { STEP = 1000, STEPS = 2 * TIMELINE_ROUND / STEP + 2 };
  struct rig rig;
  rig_start(&rig);
  uint32_t with_bob = 0, with_carol = 0;
  for (uint32_t step = 0; step < STEPS; step++) {
    struct session_ref alice = rig_user(&rig, "alice", 0);
    for (uint32_t i = 0; i < STEP; i++) {
      bool to_bob = i % 3 != 0;
      rig_post(&rig, alice, "p_msg", to_bob ? "bob" : "carol", "x", 10, "");
      *(to_bob ? &with_bob : &with_carol) += 1;
    }
    if (step == STEPS / 4 || step == STEPS / 2) expect_history(&rig, with_bob, with_carol);
    if (step == STEPS * 3 / 4) rig_restart(&rig);
  }
  expect_history(&rig, with_bob, with_carol);
  rig_restart(&rig);
  expect_history(&rig, with_bob, with_carol);
  rig_end(&rig);
}

static void history_of_an_earlier_version_is_read(void **state) {
  (void)state;
  struct rig rig;
  rig_start(&rig);
  struct session_ref alice = rig_user(&rig, "alice", 0);
  for (int i = 0; i < 10; i++)
    rig_publish(&rig, alice, "p_msg", i % 2 ? "bob" : "carol", "x", 10, "");
  rig_close(&rig);
  change_store(&rig, "DROP TABLE timeline; DELETE FROM meta WHERE name='timeline';"
                     "CREATE INDEX history ON messages(conversation, time_ms) WHERE seq > 0");
  rig_open(&rig);
  expect_history(&rig, 5, 5);
  assert_int_equal(rig_publish(&rig, rig_user(&rig, "alice", 0), "p_msg", "bob", "x", 10, "").seq, 6);
  rig_end(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kill_nine_loses_nothing_acked),
      cmocka_unit_test(stop_commits_what_was_posted),
      cmocka_unit_test(received_policy_works_and_is_kept_on_stop),
      cmocka_unit_test(full_disk_stops_acks),
      cmocka_unit_test(a_folder_serves_one_server),
      cmocka_unit_test(newer_schema_is_refused),
      cmocka_unit_test(bad_folder_is_named),
      cmocka_unit_test(extreme_numbers_in_the_store_do_no_harm),
      cmocka_unit_test(rows_without_sense_are_refused),
      cmocka_unit_test(a_damaged_file_is_named_with_what_to_do),
      cmocka_unit_test(threads_post_in_order),
      cmocka_unit_test(history_is_whole_at_any_time),
      cmocka_unit_test(history_of_an_earlier_version_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
