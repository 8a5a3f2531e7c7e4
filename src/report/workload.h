/* What a run does: the options of `muster run` after parsing. The load room carries it out, the report room prints
 * it whole, so that a report always says everything that is needed to repeat the run. */
#ifndef MUSTER_REPORT_WORKLOAD_H
#define MUSTER_REPORT_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum topology_kind { TOPOLOGY_RING, TOPOLOGY_GROUP };
enum arrivals { ARRIVALS_CONSTANT, ARRIVALS_POISSON };

struct workload {
  const char *name;                    /* "private", "group" */
  const char *target;                  /* URL as given; NULL: the embedded musterd */
  const char *api_url, *navigator_url; /* NULL: derived, not asked */
  const char *app_key;                 /* NULL: made by the embedded server */
  enum topology_kind topology;
  uint32_t clients;
  uint32_t senders;    /* clients 0..senders-1 publish; all of them in a ring */
  double rate_per_sec; /* publishes, aggregate */
  enum arrivals arrivals;
  uint64_t warmup_ns, duration_ns, grace_ns;
  uint64_t setup_deadline_ns, connect_deadline_ns, ack_timeout_ns, teardown_deadline_ns; /* lengths */
  uint32_t payload_bytes;
  uint32_t connect_concurrency; /* connections in progress at once, all workers together */
  uint32_t setup_concurrency;
  uint32_t workers; /* 0: one per core */
  uint64_t seed;    /* 0: from the clock, and reported */
  bool store, count, obfuscate;
  bool allow_non_loopback, allow_partial;
  bool tls_insecure; /* accept any certificate */
  const char *tls_ca_file;
  /* Of the embedded server. */
  const char *ack_policy; /* "durable" or "received" */
  uint32_t push_window;   /* musterd's --push-window; 0: its default */
  bool rate_limits;       /* musterd's rate limits stay on */
  /* Labels: what the machine cannot tell. */
  const char *environment_label, *database_label;
};

const char *topology_name(enum topology_kind topology);
const char *arrivals_name(enum arrivals arrivals);

#endif
