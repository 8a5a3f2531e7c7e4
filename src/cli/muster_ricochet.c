#include "cli/muster_ricochet.h"

#include "cli/muster_options.h"
#include "cli/muster_run.h"
#include "cli/muster_say.h"
#include "cli/muster_workloads.h"
#include "wire/multiaddr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_ADDED 24

/* The original's options; values as they were typed, NULL: not given. */
enum flag {
  FLAG_N,
  FLAG_C,
  FLAG_PROTOCOL,
  FLAG_PAYLOAD,
  FLAG_DURATION,
  FLAG_WARMUP,
  FLAG_BATCH,
  FLAG_DOCS,
  FLAG_V,
  FLAGS
};
static const struct {
  const char *name, *help;
} flags[FLAGS] = {
    [FLAG_N] = {"n", "requests in all [1000; sync-*: 10]"},
    [FLAG_C] = {"c", "clients, each with one request at a time [10; sync-*: 1]"},
    [FLAG_PROTOCOL] = {"protocol", "scenario [msa]"},
    [FLAG_PAYLOAD] = {"payload-size", "bytes of a message, document or entry [1024]"},
    [FLAG_DURATION] = {"duration", "run for so long instead of -n requests"},
    [FLAG_WARMUP] = {"warmup", "requests before the measurement [10; sync-*: 1]"},
    [FLAG_BATCH] = {"batch-size", "documents or messages of one request of -batch and sync-* [100]"},
    [FLAG_DOCS] = {"docs", "documents of the vault of sync-* [500]"},
    [FLAG_V] = {"v", "taken, and without effect"},
};

static const char *const scenarios[] = {"msa", "maa", "sda", "sfa", "sca", "mma", "mixed", "sda-batch", "msa-batch",
    "sync-cold", "sync-warm", "sync-noop", "mail-cycle"};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

struct words {
  char **word; /* the command line of `muster run` */
  int count;
  char number[4][24], target[512];
  const char *value[FLAGS], *place, *peer;
  bool help, rated;
};

static void put(struct words *w, const char *word) {
  w->word[w->count++] = (char *)word;
}

static void put_pair(struct words *w, const char *option, const char *value) {
  put(w, option);
  put(w, value);
}

static int help(void) {
  puts("Usage: muster ricochet [ADDR PEER] [options]\n\n"
       "Runs a scenario of ricochet-bench: ADDR is a multiaddr as /ip4/127.0.0.1/udp/55223/udx (or\n"
       ".../tcp/PORT), PEER the server's peer id. Without them a musterd is started and driven. Options may\n"
       "stand anywhere:\n");
  for (int i = 0; i < FLAGS; i++)
    printf("  -%-14s %s\n", flags[i].name, flags[i].help);
  puts("\nScenarios, and what one request is:\n");
  workload_scenarios_help(stdout);
  puts("\nThe load is a closed loop, as the original's; --rate N makes it an open one. All other options of\n"
       "`muster run` are taken too (--json, --slo, --workers ...): `muster help run`.");
  return finish_stdout(EXIT_VALID);
}

static int flag_of(const char *name, size_t len) {
  for (int i = 0; i < FLAGS; i++) {
    if (strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0) return i;
  }
  return FLAGS;
}

/* One option of muster's own, which goes on as it is. */
static enum status pass_on(struct words *w, int argc, char **argv, int *at, const char *name, size_t len) {
  char plain[48];
  snprintf(plain, sizeof plain, "%.*s", (int)(len < 47 ? len : 47), name);
  size_t option = option_find(plain);
  w->rated |= strcmp(plain, "rate") == 0 || strcmp(plain, "steps") == 0 || strcmp(plain, "outstanding") == 0;
  put(w, argv[(*at)++]);
  bool takes = option != OPTION_NONE && option_takes_value(option) && name[len] != '=';
  if (takes && *at < argc) put(w, argv[(*at)++]);
  return STATUS_OK;
}

static enum status take_word(struct words *w, int argc, char **argv, int *at, struct err *err) {
  const char *word = argv[*at];
  if (word[0] != '-') {
    const char **free_place = w->place ? &w->peer : &w->place;
    if (*free_place) return err_set(err, STATUS_USAGE, "'%.60s' is too much: ADDR and PEER are there already", word);
    *free_place = word;
    (*at)++;
    return STATUS_OK;
  }
  const char *name = word + (word[1] == '-' ? 2 : 1);
  size_t len = strcspn(name, "=");
  int flag = flag_of(name, len);
  w->help |= strcmp(name, "help") == 0 || strcmp(name, "h") == 0;
  if (w->help) return STATUS_OK;
  if (flag == FLAGS) return pass_on(w, argc, argv, at, name, len);
  (*at)++;
  if (flag == FLAG_V) return STATUS_OK;
  if (name[len] == '=') {
    w->value[flag] = name + len + 1;
  } else if (*at == argc) {
    return err_set(err, STATUS_USAGE, "-%s needs a value: %s", flags[flag].name, flags[flag].help);
  } else {
    w->value[flag] = argv[(*at)++];
  }
  return STATUS_OK;
}

/* A multiaddr and a peer id as a target URL. */
static enum status read_target(struct words *w, struct err *err) {
  struct multiaddr to;
  char peer[PEER_ID_TEXT_BYTES] = "";
  if (!w->place) return STATUS_OK;
  if (w->place[0] != '/') {
    return err_set(err, STATUS_USAGE,
        "'%.60s' is no address, as /ip4/127.0.0.1/udp/55223/udx; a scenario is given as -protocol NAME", w->place);
  }
  enum status status = multiaddr_parse(w->place, &to, err);
  if (status != STATUS_OK) return status;
  if (w->peer && !peer_id_parse(view_str(w->peer), &to.peer)) {
    return err_set(err, STATUS_USAGE, "'%.60s' is no peer id: give it as the server prints it, 12D3KooW...", w->peer);
  }
  if (!w->peer && !to.has_peer) {
    return err_set(err, STATUS_USAGE, "the server's peer id is missing: muster ricochet %.100s PEER", w->place);
  }
  peer_id_text(&to.peer, peer);
  bool literal6 = strchr(to.host, ':') != NULL;
  snprintf(w->target, sizeof w->target, "ricochet%s://%s%s%s:%u/%s", to.transport == MULTIADDR_TCP ? "+tcp" : "",
      literal6 ? "[" : "", to.host, literal6 ? "]" : "", to.port, peer);
  put_pair(w, "--target", w->target);
  return STATUS_OK;
}

/* The value of a flag as a number; 0 with an error when it is none. */
static uint64_t number_of(const struct words *w, enum flag flag, uint64_t otherwise, uint64_t least, struct err *err) {
  uint64_t number = otherwise;
  if (!w->value[flag] || (parse_count(w->value[flag], 2000000000, &number) && number >= least)) return number;
  err_set(err, STATUS_USAGE, "-%s %.40s: give a whole number from %u on", flags[flag].name, w->value[flag],
      (unsigned)least);
  return 0;
}

static enum status check_scenario(const char *name, struct err *err) {
  for (size_t i = 0; i < SCENARIOS; i++) {
    if (strcmp(scenarios[i], name) == 0) return STATUS_OK;
  }
  const char *near = nearest_word(name, scenarios, SCENARIOS);
  if (near) return err_set(err, STATUS_USAGE, "-protocol %.40s: no such scenario: did you mean %s?", name, near);
  return err_set(err, STATUS_USAGE, "-protocol %.40s: no such scenario: `muster help ricochet` lists them", name);
}

static enum status translate(struct words *w, struct err *err) {
  const char *name = w->value[FLAG_PROTOCOL] ? w->value[FLAG_PROTOCOL] : "msa";
  bool sync = strncmp(name, "sync-", 5) == 0;
  enum status status = check_scenario(name, err);
  if (status == STATUS_OK) status = read_target(w, err);
  if (status != STATUS_OK) return status;
  err->status = STATUS_OK;
  uint64_t requests = number_of(w, FLAG_N, sync ? 10 : 1000, 1, err);
  uint64_t clients = number_of(w, FLAG_C, sync ? 1 : 10, 1, err);
  uint64_t warmup = number_of(w, FLAG_WARMUP, sync ? 1 : 10, 0, err);
  number_of(w, FLAG_BATCH, 0, 1, err);
  number_of(w, FLAG_DOCS, 0, 1, err);
  if (err->status != STATUS_OK) return err->status;
  if (!w->value[FLAG_DURATION] && clients > requests) clients = requests;
  snprintf(w->number[0], sizeof w->number[0], "%llu", (unsigned long long)requests);
  snprintf(w->number[1], sizeof w->number[1], "%llu", (unsigned long long)clients);
  snprintf(w->number[2], sizeof w->number[2], "%llu", (unsigned long long)warmup);
  if (w->value[FLAG_DURATION]) {
    put_pair(w, "--duration", w->value[FLAG_DURATION]);
  } else {
    put_pair(w, "--count", w->number[0]);
  }
  put_pair(w, "--clients", w->number[1]);
  if (warmup > 0) put_pair(w, "--warmup-requests", w->number[2]);
  put_pair(w, "--warmup", "0s");
  if (!w->rated) put_pair(w, "--outstanding", "1");
  if (w->value[FLAG_PAYLOAD]) put_pair(w, "--payload-bytes", w->value[FLAG_PAYLOAD]);
  /* The original takes both with every scenario; here they belong to those that use them. */
  if (w->value[FLAG_BATCH] && (sync || strstr(name, "-batch"))) put_pair(w, "--batch-size", w->value[FLAG_BATCH]);
  if (w->value[FLAG_DOCS] && sync) put_pair(w, "--docs", w->value[FLAG_DOCS]);
  w->word[0] = (char *)name;
  return STATUS_OK;
}

int command_ricochet(int argc, char **argv) {
  struct err err = {0};
  struct words w = {.count = 1};
  enum status status = STATUS_OK;
  w.word = calloc((size_t)argc + WORDS_ADDED, sizeof *w.word);
  if (!w.word) status = err_set(&err, STATUS_MEMORY, "out of memory");
  for (int at = 0; status == STATUS_OK && at < argc && !w.help;)
    status = take_word(&w, argc, argv, &at, &err);
  if (status == STATUS_OK && !w.help) status = translate(&w, &err);
  int code = status != STATUS_OK ? complain(&err) : w.help ? help() : command_run(w.count, w.word);
  free(w.word);
  return code;
}
