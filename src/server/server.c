#include "server/server.h"

#include "base/clock.h"
#include "net/address.h"
#include "server/admin.h"
#include "server/api.h"
#include "server/core.h"
#include "server/descriptors.h"
#include "server/gateway.h"
#include "server/metrics.h"
#include "server/navigator.h"
#include "server/rest.h"
#include "server/ricochet.h"
#include "server/session.h"
#include "server/shootout.h"
#include "server/tenants.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#define API_THREADS 32
#define SMALL_THREADS 1
#define GATEWAYS_MAX 1024

struct server {
  struct server_config config;
  struct core *core;
  struct gateway *gateways;
  struct gateway_port *ports[GATEWAYS_MAX];
  uint32_t ready_gateways; /* whose port to the core is open */
  struct metrics_source metrics;
  struct tenants tenants;
  bool has_tenants;
  struct api api;
  struct navigator navigator;
  struct admin admin;
  struct rest *api_service, *navigator_service, *admin_service;
  struct shootout *shootout; /* NULL unless asked for, as is ricochet */
  struct ricochet_house *ricochet;
};

void server_config_defaults(struct server_config *config) {
  *config = (struct server_config){
      .bind_host = "127.0.0.1",
      .api_port = 9001,
      .navigator_port = 9002,
      .ws_port = 9003,
      .admin_port = 8090,
      .data_dir = "musterd-data",
      .ack = ACK_DURABLE,
      .rate_limits = true,
      .rate_limit_per_sec = 100,
      .rate_limit_burst = 10,
      .push_window = 64,
      .session_out_bytes = 256 * 1024,
      .message_max_bytes = 1024 * 1024,
      .chatroom_history = SERVER_CHATROOM_HISTORY,
      .slow_reader_ms = 10000,
      .login_deadline_ms = 10000,
      .read_deadline_ms = 60000,
  };
}

static uint32_t default_gateways(const struct server_config *config) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t wanted = cores > 3 ? (uint32_t)cores / 2 : 1;
  uint32_t needed = descriptors_gateways(config->max_connections, descriptors_limit());
  return needed > wanted ? needed : wanted;
}

static enum status check_config(struct server_config *config, struct err *err) {
  if (config->gateways == 0) config->gateways = default_gateways(config);
  if (config->gateways > GATEWAYS_MAX) {
    return err_set(err, STATUS_USAGE, "gateways: %u is more than %d%s", config->gateways, GATEWAYS_MAX,
        config->max_connections ? "; raise the limit of open files (ulimit -n)" : "");
  }
  if (config->chatroom_history > SERVER_CHATROOM_HISTORY_MAX) {
    return err_set(err, STATUS_USAGE, "chatroom_history: %u is more than %d", config->chatroom_history,
        SERVER_CHATROOM_HISTORY_MAX);
  }
  if (config->message_max_bytes > SERVER_MESSAGE_MAX) {
    return err_set(
        err, STATUS_USAGE, "message_max_bytes: %u is more than %u", config->message_max_bytes, SERVER_MESSAGE_MAX);
  }
  if (config->push_window == 0 || config->push_window > SESSION_PUSH_WINDOW_MAX) {
    return err_set(err, STATUS_USAGE, "push window: must be 1 to %d", SESSION_PUSH_WINDOW_MAX);
  }
  if (config->rate_limits && (config->rate_limit_per_sec == 0 || config->rate_limit_burst == 0)) {
    return err_set(err, STATUS_USAGE, "rate limit: must be at least 1 per second with a burst of at least 1");
  }
  if (!config->tls_certificate != !config->tls_key) {
    return err_set(err, STATUS_USAGE, "TLS: a certificate needs its key, and the other way round");
  }
  bool zero = !config->session_out_bytes || !config->message_max_bytes || !config->slow_reader_ms ||
              !config->login_deadline_ms || !config->read_deadline_ms;
  if (zero) return err_set(err, STATUS_USAGE, "sizes and times of the configuration must not be 0");
  return STATUS_OK;
}

static enum status start_core(struct server *server, struct err *err) {
  server->gateways = calloc(server->config.gateways, sizeof *server->gateways);
  if (!server->gateways) return err_set(err, STATUS_MEMORY, "out of memory for the gateways");
  for (uint32_t i = 0; i < server->config.gateways; i++) {
    enum status status = gateway_init(&server->gateways[i], (uint16_t)i, &server->config, err);
    if (status != STATUS_OK) return status;
    server->ready_gateways++;
    server->ports[i] = &server->gateways[i].port;
  }
  return core_start(&server->core, &server->config, server->ports, server->config.gateways, err);
}

static enum status start_gateways(struct server *server, struct err *err) {
  struct server_config *config = &server->config;
  struct door_addresses doors;
  enum status status = door_addresses_read(config->bind_host, config->bind_more, config->ws_port, &doors, err);
  for (uint32_t i = 0; status == STATUS_OK && i < config->gateways; i++)
    status = gateway_start(&server->gateways[i], server->core, &server->metrics, &doors, err);
  if (status != STATUS_OK) return status;
  config->ws_port = address_port(&doors.address[0]);
  address_text(&doors.address[0], server->navigator.ws_address, sizeof server->navigator.ws_address);
  return status;
}

static enum status start_http(struct server *server, struct err *err) {
  struct server_config *config = &server->config;
  tenants_init(&server->tenants, server->core);
  server->has_tenants = true;
  server->api = (struct api){server->core, &server->tenants, &server->metrics};
  server->admin = (struct admin){server->core, config->admin_secret};
  server->navigator.tenants = &server->tenants;
  const struct rest_config api = {"HTTP API", "api_", config->bind_host, config->api_port, API_THREADS, false,
      api_authorize, api_handle, &server->api};
  const struct rest_config navigator = {"navigator", "nav_", config->bind_host, config->navigator_port, SMALL_THREADS,
      true, navigator_authorize, navigator_handle, &server->navigator};
  const struct rest_config admin = {"admin API", "admin_", config->bind_host, config->admin_port, SMALL_THREADS, false,
      admin_authorize, admin_handle, &server->admin};
  enum status status = rest_start(&server->api_service, &api, &config->api_port, err);
  if (status != STATUS_OK) return status;
  status = rest_start(&server->navigator_service, &navigator, &config->navigator_port, err);
  if (status != STATUS_OK) return status;
  return rest_start(&server->admin_service, &admin, &config->admin_port, err);
}

enum status server_start(struct server **out, struct server_config *config, struct err *err) {
  enum status status = check_config(config, err);
  if (status != STATUS_OK) return status;
  struct server *server = calloc(1, sizeof *server);
  if (!server) return err_set(err, STATUS_MEMORY, "out of memory for the server");
  server->config = *config;
  status = start_core(server, err);
  server->metrics = (struct metrics_source){.gateways = server->gateways,
      .gateway_count = config->gateways,
      .core = server->core,
      .data_dir = config->data_dir,
      .started_ns = clock_now_ns(),
      .is_durable = config->ack == ACK_DURABLE};
  if (status == STATUS_OK) status = start_gateways(server, err);
  if (status == STATUS_OK && config->shootout) {
    status = shootout_start(&server->shootout, &server->config, &server->config.shootout_port, err);
    server->metrics.shootout = server->shootout;
  }
  if (status == STATUS_OK && config->ricochet) {
    if (!config->ricochet_host) server->config.ricochet_host = config->bind_host;
    status = ricochet_house_start(&server->ricochet, &server->config, err);
    server->metrics.ricochet = server->ricochet;
  }
  if (status == STATUS_OK) status = start_http(server, err);
  if (status != STATUS_OK) {
    server_stop(server);
    return status;
  }
  *config = server->config;
  *out = server;
  return STATUS_OK;
}

static void enter_all(struct server *server, enum gateway_phase phase) {
  for (uint32_t i = 0; i < server->ready_gateways; i++)
    gateway_enter(&server->gateways[i], phase);
  for (uint32_t i = 0; i < server->ready_gateways; i++)
    gateway_wait(&server->gateways[i], phase);
}

void server_stop(struct server *server) {
  if (!server) return;
  rest_stop(server->api_service);
  rest_stop(server->navigator_service);
  rest_stop(server->admin_service);
  shootout_stop(server->shootout);
  ricochet_house_stop(server->ricochet);
  enter_all(server, GATEWAY_DRAINING);
  if (server->core) core_stop(server->core);
  enter_all(server, GATEWAY_FLUSHING);
  for (uint32_t i = 0; i < server->ready_gateways; i++)
    gateway_free(&server->gateways[i]);
  if (server->has_tenants) tenants_free(&server->tenants);
  free(server->gateways);
  free(server);
}

void server_drop_sessions(struct server *server) {
  for (uint32_t i = 0; i < server->ready_gateways; i++)
    gateway_drop_sessions(&server->gateways[i]);
}

bool server_failed(struct server *server, struct err *err) {
  return core_failed(server->core, err) || ricochet_house_failed(server->ricochet, err);
}
