/* musterd: options in, exit code out. Exit codes: 0 stopped by a signal, 1 the server failed, 2 wrong usage. */
#include "net/address.h"
#include "server/doors.h"
#include "server/server.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MUSTERD_VERSION "0.1.0"

enum { EXIT_USAGE = 2 };

struct options {
  struct server_config config;
  char host[256]; /* the first of --host */
  bool allow_non_loopback, help, version;
  char ricochet_host[256];
};

enum option_id {
  OPT_HOST = 256,
  OPT_API_PORT,
  OPT_NAVIGATOR_PORT,
  OPT_WS_PORT,
  OPT_ADMIN_PORT,
  OPT_DATA,
  OPT_ACK,
  OPT_GATEWAYS,
  OPT_MAX_CONNECTIONS,
  OPT_NO_RATE_LIMITS,
  OPT_RATE_LIMIT,
  OPT_RATE_BURST,
  OPT_PUSH_WINDOW,
  OPT_SESSION_OUT_BYTES,
  OPT_MESSAGE_MAX_BYTES,
  OPT_SLOW_READER,
  OPT_PING_INTERVAL,
  OPT_CHATROOM_HISTORY,
  OPT_APP_KEY,
  OPT_TLS_CERT,
  OPT_TLS_KEY,
  OPT_SHOOTOUT,
  OPT_RICOCHET,
  OPT_RICOCHET_RATE,
  OPT_RICOCHET_MESSAGES,
  OPT_ALLOW_NON_LOOPBACK,
};

static const struct option long_options[] = {
    {"host", required_argument, NULL, OPT_HOST},
    {"api-port", required_argument, NULL, OPT_API_PORT},
    {"navigator-port", required_argument, NULL, OPT_NAVIGATOR_PORT},
    {"ws-port", required_argument, NULL, OPT_WS_PORT},
    {"admin-port", required_argument, NULL, OPT_ADMIN_PORT},
    {"data", required_argument, NULL, OPT_DATA},
    {"ack", required_argument, NULL, OPT_ACK},
    {"gateways", required_argument, NULL, OPT_GATEWAYS},
    {"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
    {"no-rate-limits", no_argument, NULL, OPT_NO_RATE_LIMITS},
    {"rate-limit", required_argument, NULL, OPT_RATE_LIMIT},
    {"rate-burst", required_argument, NULL, OPT_RATE_BURST},
    {"push-window", required_argument, NULL, OPT_PUSH_WINDOW},
    {"session-out-bytes", required_argument, NULL, OPT_SESSION_OUT_BYTES},
    {"message-max-bytes", required_argument, NULL, OPT_MESSAGE_MAX_BYTES},
    {"slow-reader", required_argument, NULL, OPT_SLOW_READER},
    {"ping-interval", required_argument, NULL, OPT_PING_INTERVAL},
    {"chatroom-history", required_argument, NULL, OPT_CHATROOM_HISTORY},
    {"app-key", required_argument, NULL, OPT_APP_KEY},
    {"tls-cert", required_argument, NULL, OPT_TLS_CERT},
    {"tls-key", required_argument, NULL, OPT_TLS_KEY},
    {"shootout", required_argument, NULL, OPT_SHOOTOUT},
    {"ricochet", optional_argument, NULL, OPT_RICOCHET},
    {"ricochet-rate-limit", required_argument, NULL, OPT_RICOCHET_RATE},
    {"ricochet-mailbox-messages", required_argument, NULL, OPT_RICOCHET_MESSAGES},
    {"allow-non-loopback", no_argument, NULL, OPT_ALLOW_NON_LOOPBACK},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
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

static bool read_ack(const char *text, enum ack_policy *out) {
  if (strcmp(text, "durable") == 0) {
    *out = ACK_DURABLE;
  } else if (strcmp(text, "received") == 0) {
    *out = ACK_RECEIVED;
  } else {
    fprintf(stderr, "musterd: --ack: \"%s\" is neither durable nor received\n", text);
    return false;
  }
  return true;
}

/* "PORT", "HOST:PORT", or nothing. */
static bool read_ricochet(struct options *options, const char *text) {
  struct server_config *config = &options->config;
  struct url url;
  uint16_t port = 55223;
  config->ricochet = true;
  if (text && strspn(text, "0123456789") == strlen(text)) {
    if (!read_port("ricochet", text, &port)) return false;
  } else if (text) {
    if (url_parse(text, &url, NULL) != STATUS_OK || url.scheme[0] || url.path[0]) {
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

static bool take_option(struct options *options, int id, const char *name, const char *text) {
  struct server_config *config = &options->config;
  switch (id) {
  case OPT_HOST:
    return take_hosts(options, text);
  case OPT_API_PORT:
    return read_port(name, text, &config->api_port);
  case OPT_NAVIGATOR_PORT:
    return read_port(name, text, &config->navigator_port);
  case OPT_WS_PORT:
    return read_port(name, text, &config->ws_port);
  case OPT_ADMIN_PORT:
    return read_port(name, text, &config->admin_port);
  case OPT_DATA:
    config->data_dir = text;
    return true;
  case OPT_ACK:
    return read_ack(text, &config->ack);
  case OPT_GATEWAYS:
    return read_number(name, text, 1, 1024, &config->gateways);
  case OPT_MAX_CONNECTIONS:
    return read_number(name, text, 1, 16000000, &config->max_connections);
  case OPT_NO_RATE_LIMITS:
    config->rate_limits = false;
    return true;
  case OPT_RATE_LIMIT:
    return read_number(name, text, 1, 1000000, &config->rate_limit_per_sec);
  case OPT_RATE_BURST:
    return read_number(name, text, 1, 1000000, &config->rate_limit_burst);
  case OPT_PUSH_WINDOW:
    return read_number(name, text, 1, 16384, &config->push_window);
  case OPT_SESSION_OUT_BYTES:
    return read_number(name, text, 1024, 1u << 30, &config->session_out_bytes);
  case OPT_MESSAGE_MAX_BYTES:
    return read_number(name, text, 1024, SERVER_MESSAGE_MAX, &config->message_max_bytes);
  case OPT_SLOW_READER:
    return read_number(name, text, 1, 3600000, &config->slow_reader_ms);
  case OPT_PING_INTERVAL:
    return read_number(name, text, 1, 3600000, &config->ping_interval_ms);
  case OPT_CHATROOM_HISTORY:
    return read_number(name, text, 1, SERVER_CHATROOM_HISTORY_MAX, &config->chatroom_history);
  case OPT_APP_KEY:
    config->app_key = text;
    return true;
  case OPT_TLS_CERT:
    config->tls_certificate = text;
    return true;
  case OPT_TLS_KEY:
    config->tls_key = text;
    return true;
  case OPT_SHOOTOUT:
    config->shootout = true;
    return read_port(name, text, &config->shootout_port);
  case OPT_RICOCHET:
    return read_ricochet(options, text);
  case OPT_RICOCHET_RATE:
    return read_number(name, text, 1, 1000000, &config->ricochet_rate);
  case OPT_RICOCHET_MESSAGES:
    return read_number(name, text, 1, 1000000000, &config->ricochet_messages);
  case OPT_ALLOW_NON_LOOPBACK:
    options->allow_non_loopback = true;
    return true;
  case 'h':
    options->help = true;
    return true;
  case 'V':
    options->version = true;
    return true;
  default:
    fprintf(stderr, "Try: musterd --help\n");
    return false;
  }
}

static bool read_options(int argc, char **argv, struct options *options) {
  int id, index = 0;
  while ((id = getopt_long(argc, argv, "hV", long_options, &index)) != -1) {
    /* An address behind --ricochet is its own, although it may be left out. */
    bool apart = id == OPT_RICOCHET && !optarg && optind < argc && argv[optind][0] != '-';
    if (!take_option(options, id, long_options[index].name, apart ? argv[optind++] : optarg)) return false;
  }
  if (optind == argc) return true;
  fprintf(stderr, "musterd: \"%s\" is not an option; try: musterd --help\n", argv[optind]);
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
    printf("musterd %s\n", MUSTERD_VERSION);
    return EXIT_SUCCESS;
  }
  return check_options(&options) ? serve(&options.config) : EXIT_USAGE;
}
