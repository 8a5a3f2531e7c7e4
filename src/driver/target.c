#include "driver/target.h"

#include "net/tls.h"

#include <string.h>

enum status target_open(struct driver_run *run, bool tls, struct err *err) {
  const struct driver_settings *settings = &run->settings;
  if (!settings->tls_certificate_file != !settings->tls_key_file) {
    return err_set(err, STATUS_USAGE, "--cert and --key belong together: give both");
  }
  memcpy(run->server_name, settings->url.host, sizeof run->server_name);
  enum status status = address_resolve(settings->url.host, settings->url.port, &run->address, err);
  if (status != STATUS_OK || !tls) return status;
  status = tls_client_context(&run->tls, settings->tls_verify, settings->tls_ca_file, err);
  if (status != STATUS_OK || !settings->tls_certificate_file) return status;
  return tls_client_certificate(run->tls, settings->tls_certificate_file, settings->tls_key_file, err);
}

void target_release(struct driver_run *run) {
  tls_context_free(run->tls);
  run->tls = NULL;
  arena_free(&run->arena);
  run->population = NULL;
}
