/* musterd: options in, exit code out. Exit codes: 0 stopped by a signal, 1 the server failed, 2 wrong usage. */
#include "build_facts.h"
#include "net/address.h"
#include "server/doors.h"
#include "server/server.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { EXIT_USAGE = 2 };

struct options {
  struct server_config config;
  char host[256]; /* the first of --host */
  bool allow_non_loopback, help, version;
  char ricochet_host[256];
};

static void print_help(void) {
  struct server_config d;
  server_config_defaults(&d);
  printf(
      "Usage: musterd [options]\n"
      "A messaging server that speaks JuggleIM's protocol, with durable acknowledgements.\n\n"
      "Addresses\n"
      "  --host HOST[,ADDRESS,...]   address to bind (%s); more are for WebSockets alone\n"
      "  --allow-non-loopback        needed for any other than a loopback address\n"
      "  --api-port PORT             server HTTP API (%u); port 0 takes a free one\n"
      "  --navigator-port PORT       navigator (%u)\n"
      "  --ws-port PORT              WebSocket (%u)\n"
      "  --admin-port PORT           admin HTTP API (%u)\n"
      "  --tls-cert FILE, --tls-key FILE   serve wss with this certificate and key\n"
      "  --shootout PORT             also serve websocket-shootout's protocols there: /ws, /json, /binary,\n"
      "                              /socket/websocket (Phoenix) and /cable (ActionCable); 0 takes a free port\n"
      "  --ricochet [HOST:]PORT      also be a Ricochet peer there, over UDX and over TCP (libp2p), with mailboxes,\n"
      "                              documents, feeds and collections; alone: HOST and 55223; 0 takes free ports\n\n",
      d.bind_host, d.api_port, d.navigator_port, d.ws_port, d.admin_port);
  printf("Storage\n"
         "  --data FOLDER               folder of the store, made when missing (%s)\n"
         "  --ack durable|received      acknowledge after the commit, or once the message has its id (durable)\n"
         "  --app-key KEY               make this tenant at start unless it exists; secret: MUSTERD_APP_SECRET\n\n",
      d.data_dir);
  printf(
      "Limits\n"
      "  --gateways N                gateway threads (half the cores, at least one)\n"
      "  --max-connections N         hold N connections, in several tables of open files where one (ulimit -n) is\n"
      "                              too small; each takes a gateway\n"
      "  --no-rate-limits            no limit on publishes and queries per connection\n"
      "  --rate-limit N              publishes and queries per second and connection (%u)\n"
      "  --rate-burst N              what the limiter lets through at once (%u)\n"
      "  --push-window N             pushes without an ack before a session is notified instead (%u)\n"
      "  --session-out-bytes N       output that may wait for one session (%u)\n"
      "  --message-max-bytes N       size of one WebSocket message (%u)\n"
      "  --slow-reader MS            a session whose output does not move for so long is dropped (%u)\n"
      "  --ping-interval MS          WebSocket Pings of the server (5000, up to 25000 with many sessions)\n"
      "  --chatroom-history N        messages that a chatroom keeps for its members to pull (%u)\n"
      "  --ricochet-mailbox-messages N   messages that a Ricochet mailbox holds; more get 507 (1000)\n"
      "  --ricochet-rate-limit N     Ricochet requests per second and connection; more get 429 and a hint (none)\n\n",
      d.rate_limit_per_sec, d.rate_limit_burst, d.push_window, d.session_out_bytes, d.message_max_bytes,
      d.slow_reader_ms, d.chatroom_history);
  printf(
      "  --help, --version\n\n"
      "Secrets come from the environment: MUSTERD_APP_SECRET (16 characters, of --app-key) and MUSTERD_ADMIN_SECRET\n"
      "(signs admin calls; without it they are refused).\n");
}

/* A whole number within bounds; prints what is wrong. */
static bool read_number(const char *name, const char *text, uint32_t min, uint32_t max, uint32_t *out) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  bool whole = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
  if (!whole || value < min || value > max) {
    fprintf(stderr, "musterd: --%s: \"%s\" is not a whole number from %u to %u\n", name, text, min, max);
    return false;
  }
  *out = (uint32_t)value;
  return true;
}

static bool read_port(const char *name, const char *text, uint16_t *out) {
  uint32_t value;
  if (!read_number(name, text, 0, 65535, &value)) return false;
  *out = (uint16_t)value;
  return true;
}

/* "PORT", "HOST:PORT", or nothing. */
static bool take_ricochet(struct options *options, const char *text) {
  struct server_config *config = &options->config;
  struct url url;
  uint16_t port = 55223;
  config->ricochet = true;
  if (text[0] && strspn(text, "0123456789") == strlen(text)) {
    if (!read_port("ricochet", text, &port)) return false;
  } else if (text[0]) {
    /* No URL has port 0, which here takes a free one. */
    const char *colon = strrchr(text, ':');
    bool is_free = colon && strcmp(colon, ":0") == 0;
    char address[sizeof options->ricochet_host];
    snprintf(address, sizeof address, "%.*s", (int)(is_free ? (size_t)(colon - text) : strlen(text)), text);
    if (is_free) port = 0;
    if (url_parse(address, &url, NULL) != STATUS_OK || url.scheme[0] || url.path[0]) {
      fprintf(stderr, "musterd: --ricochet: \"%.100s\" is neither a port nor HOST:PORT\n", text);
      return false;
    }
    snprintf(options->ricochet_host, sizeof options->ricochet_host, "%s", url.host);
    config->ricochet_host = options->ricochet_host;
    if (url.port > 0) port = url.port;
  }
  config->ricochet_udx.port = config->ricochet_tcp.port = port;
  return true;
}

/* "HOST,ADDRESS,...": the first has all ports. */
static bool take_hosts(struct options *options, const char *text) {
  size_t len = strcspn(text, ",");
  int written = snprintf(options->host, sizeof options->host, "%.*s", (int)len, text);
  if (written <= 0 || (size_t)written >= sizeof options->host) {
    fprintf(stderr, "musterd: --host: \"%.80s\" does not begin with a host\n", text);
    return false;
  }
  options->config.bind_host = options->host;
  options->config.bind_more = text[len] ? text + len + 1 : NULL;
  return true;
}

/* --- the options --- */

enum option_kind { OPTION_NUMBER, OPTION_PORT, OPTION_TEXT, OPTION_OWN, OPTION_SWITCH };

static bool take_ack(struct options *options, const char *text) {
  bool is_durable = strcmp(text, "durable") == 0;
  if (!is_durable && strcmp(text, "received") != 0) {
    fprintf(stderr, "musterd: --ack: \"%s\" is neither durable nor received\n", text);
    return false;
  }
  options->config.ack = is_durable ? ACK_DURABLE : ACK_RECEIVED;
  return true;
}

static bool take_shootout(struct options *options, const char *text) {
  options->config.shootout = true;
  return read_port("shootout", text, &options->config.shootout_port);
}

static bool lift_rate_limits(struct options *options, const char *text) {
  (void)text;
  options->config.rate_limits = false;
  return true;
}

#define IN_CONFIG(member) offsetof(struct options, config.member)
#define NUMBER(its_name, member, least, most)                                                                          \
  { .name = (its_name), .kind = OPTION_NUMBER, .offset = IN_CONFIG(member), .min = (least), .max = (most) }
#define PORT(its_name, member)                                                                                         \
  { .name = (its_name), .kind = OPTION_PORT, .offset = IN_CONFIG(member) }
#define TEXT(its_name, member)                                                                                         \
  { .name = (its_name), .kind = OPTION_TEXT, .offset = IN_CONFIG(member) }
#define SWITCH(its_name, member)                                                                                       \
  { .name = (its_name), .kind = OPTION_SWITCH, .offset = offsetof(struct options, member) }
#define OWN(its_name, its_take, argument)                                                                              \
  { .name = (its_name), .kind = OPTION_OWN, .take = (its_take), .has_arg = (argument) }

static const struct server_option {
  const char *name;
  enum option_kind kind;
  size_t offset;                                           /* in struct options; of OPTION_OWN 0 */
  uint32_t min, max;                                       /* of OPTION_NUMBER */
  bool (*take)(struct options *options, const char *text); /* of OPTION_OWN; text "": none was given */
  int has_arg;                                             /* of OPTION_OWN */
} server_options[] = {
    OWN("host", take_hosts, required_argument),
    PORT("api-port", api_port),
    PORT("navigator-port", navigator_port),
    PORT("ws-port", ws_port),
    PORT("admin-port", admin_port),
    TEXT("data", data_dir),
    OWN("ack", take_ack, required_argument),
    NUMBER("gateways", gateways, 1, 1024),
    NUMBER("max-connections", max_connections, 1, 16000000),
    OWN("no-rate-limits", lift_rate_limits, no_argument),
    NUMBER("rate-limit", rate_limit_per_sec, 1, 1000000),
    NUMBER("rate-burst", rate_limit_burst, 1, 1000000),
    NUMBER("push-window", push_window, 1, 16384),
    NUMBER("session-out-bytes", session_out_bytes, 1024, 1u << 30),
    NUMBER("message-max-bytes", message_max_bytes, 1024, SERVER_MESSAGE_MAX),
    NUMBER("slow-reader", slow_reader_ms, 1, 3600000),
    NUMBER("ping-interval", ping_interval_ms, 1, 3600000),
    NUMBER("chatroom-history", chatroom_history, 1, SERVER_CHATROOM_HISTORY_MAX),
    TEXT("app-key", app_key),
    TEXT("tls-cert", tls_certificate),
    TEXT("tls-key", tls_key),
    OWN("shootout", take_shootout, required_argument),
    OWN("ricochet", take_ricochet, optional_argument),
    NUMBER("ricochet-rate-limit", ricochet_rate, 1, 1000000),
    NUMBER("ricochet-mailbox-messages", ricochet_messages, 1, 1000000000),
    SWITCH("allow-non-loopback", allow_non_loopback),
    SWITCH("help", help),
    SWITCH("version", version),
};
#define OPTIONS (sizeof server_options / sizeof server_options[0])

static bool take_option(struct options *options, const struct server_option *option, const char *text) {
  void *field = (char *)options + option->offset;
  switch (option->kind) {
  case OPTION_NUMBER:
    return read_number(option->name, text, option->min, option->max, field);
  case OPTION_PORT:
    return read_port(option->name, text, field);
  case OPTION_TEXT:
    *(const char **)field = text;
    return true;
  case OPTION_SWITCH:
    *(bool *)field = true;
    return true;
  case OPTION_OWN:
    break;
  }
  return option->take(options, text);
}

/* As getopt_long wants them, ended by zeroes; what an option is known by is its place in the table. */
static void list_options(struct option out[OPTIONS + 1]) {
  memset(out, 0, (OPTIONS + 1) * sizeof *out);
  for (size_t i = 0; i < OPTIONS; i++) {
    const struct server_option *option = &server_options[i];
    out[i].name = option->name;
    out[i].has_arg = option->kind == OPTION_OWN      ? option->has_arg
                     : option->kind == OPTION_SWITCH ? no_argument
                                                     : required_argument;
  }
}

/* What getopt_long stopped at, in one line; getopt itself is silent, since its list of letters begins with a colon. */
static bool refuse_option(int id, const char *word) {
  const char letter[] = {'-', (char)optopt, '\0'}; /* of short options, several of which may share a word */
  const char *why = id == ':' ? "needs a value" : "is an unknown option, short for several, or takes no value";
  fprintf(stderr, "musterd: %s %s: `musterd --help` lists them\n", optopt ? letter : word, why);
  return false;
}

static bool read_options(int argc, char **argv, struct options *options) {
  struct option long_options[OPTIONS + 1];
  int id, index = 0;
  list_options(long_options);
  while ((id = getopt_long(argc, argv, ":hV", long_options, &index)) != -1) {
    if (id == '?' || id == ':') return refuse_option(id, argv[optind - 1]);
    options->help |= id == 'h';
    options->version |= id == 'V';
    if (id != 0) continue;
    /* An address behind --ricochet is its own, although it may be left out. */
    bool apart = long_options[index].has_arg == optional_argument && !optarg && optind < argc && argv[optind][0] != '-';
    const char *text = apart ? argv[optind++] : optarg;
    if (!take_option(options, &server_options[index], text ? text : "")) return false;
  }
  if (optind == argc) return true;
  fprintf(stderr, "musterd: \"%s\" is not an option: `musterd --help` lists them\n", argv[optind]);
  return false;
}

static const char *secret_of(const char *variable) {
  const char *value = getenv(variable);
  return value && *value ? value : NULL;
}

/* Whether this host, and more addresses (NULL: none), may be bound; prints what is wrong. */
static bool check_host(const struct options *options, const char *option, const char *host, const char *more) {
  struct err err = {0};
  struct door_addresses doors;
  if (door_addresses_read(host, more, 0, &doors, &err) != STATUS_OK) {
    fprintf(stderr, "musterd: --%s: %s\n", option, err.text);
    return false;
  }
  for (uint32_t i = 0; i < doors.count && !options->allow_non_loopback; i++) {
    if (address_is_loopback(&doors.address[i])) continue;
    fprintf(stderr, "musterd: --%s %s%s%s is no loopback address; add --allow-non-loopback if the network is trusted\n",
        option, host, more ? "," : "", more ? more : "");
    return false;
  }
  return true;
}

static bool check_options(struct options *options) {
  struct server_config *config = &options->config;
  if (!check_host(options, "host", config->bind_host, config->bind_more)) return false;
  if (config->ricochet_host && !check_host(options, "ricochet", config->ricochet_host, NULL)) return false;
  config->admin_secret = secret_of("MUSTERD_ADMIN_SECRET");
  if (!config->app_key) return true;
  config->app_secret = secret_of("MUSTERD_APP_SECRET");
  if (config->app_secret && strlen(config->app_secret) == 16) return true;
  fprintf(stderr, "musterd: --app-key needs its secret of 16 characters in the environment: MUSTERD_APP_SECRET\n");
  return false;
}

/* One descriptor a connection: takes what the system allows. */
static void raise_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void print_ready(const struct server_config *config) {
  const char *host = config->bind_host;
  bool literal6 = strchr(host, ':') != NULL;
  const char *open = literal6 ? "[" : "", *close = literal6 ? "]" : "";
  printf("musterd ready: %s %s%s%s:%u api %s%s%s:%u navigator %s%s%s:%u admin %s%s%s:%u data %s ack %s",
      config->tls_certificate ? "wss" : "ws", open, host, close, config->ws_port, open, host, close, config->api_port,
      open, host, close, config->navigator_port, open, host, close, config->admin_port, config->data_dir,
      config->ack == ACK_DURABLE ? "durable" : "received");
  if (config->shootout) printf(" shootout %s%s%s:%u", open, host, close, config->shootout_port);
  if (config->ricochet) {
    printf(" ricochet %s %s peer %s", config->ricochet_udx.multiaddr, config->ricochet_tcp.multiaddr,
        config->ricochet_peer);
  }
  putchar('\n');
  fflush(stdout);
}

/* Until a signal asks to stop (0) or the server fails (1). */
static int wait_for_end(struct server *server, const sigset_t *signals) {
  const struct timespec period = {.tv_nsec = 200000000};
  for (;;) {
    int number = sigtimedwait(signals, NULL, &period);
    if (number == SIGUSR1) server_drop_sessions(server);
    if (number > 0 && number != SIGUSR1) return EXIT_SUCCESS;
    struct err err = {0};
    if (!server_failed(server, &err)) continue;
    fprintf(stderr, "musterd: %s\n", err.text);
    return EXIT_FAILURE;
  }
}

static int serve(struct server_config *config) {
  /* Blocked before any thread exists, so that only this one takes them. */
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  struct sigaction hang_up;
  bool stays = sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler == SIG_IGN; /* nohup */
  if (!stays) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a write error, which is reported */
  raise_descriptors();
  struct server *server = NULL;
  struct err err = {0};
  enum status status = server_start(&server, config, &err);
  if (status != STATUS_OK) {
    fprintf(stderr, "musterd: %s\n", err.text);
    return status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILURE;
  }
  print_ready(config);
  int code = wait_for_end(server, &signals);
  server_stop(server);
  return code;
}

int main(int argc, char **argv) {
  struct options options = {0};
  server_config_defaults(&options.config);
  if (!read_options(argc, argv, &options)) return EXIT_USAGE;
  if (options.help) {
    print_help();
    return EXIT_SUCCESS;
  }
  if (options.version) {
    printf("musterd %s\n", MUSTER_VERSION);
    return EXIT_SUCCESS;
  }
  return check_options(&options) ? serve(&options.config) : EXIT_USAGE;
}
