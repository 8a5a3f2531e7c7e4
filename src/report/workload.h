/* What a run does: the options of `muster run` after parsing. The load room carries it out, the report room prints
 * it whole, so that a report always says everything that is needed to repeat the run. */
#ifndef MUSTER_REPORT_WORKLOAD_H
#define MUSTER_REPORT_WORKLOAD_H

#include "base/facts.h"

#include <stdbool.h>
#include <stdint.h>

/* Who publishes to whom. */
enum topology_kind {
  TOPOLOGY_RING,      /* every client to the next one */
  TOPOLOGY_PAIRS,     /* clients 2i and 2i + 1 to each other */
  TOPOLOGY_STAR,      /* each sender to all receivers in turn */
  TOPOLOGY_QUEUE,     /* each sender to all queues in turn; one of a queue's consumers gets it */
  TOPOLOGY_GROUPS,    /* senders to the other members of their group, or of all groups in turn */
  TOPOLOGY_ROOM,      /* senders to the other members of the one chatroom */
  TOPOLOGY_BROADCAST, /* senders to everybody, themselves included */
  TOPOLOGY_ECHO,      /* every client to itself; what comes back is the answer */
  TOPOLOGY_SELF,      /* every client carries out operations on itself: ACKs only */
  TOPOLOGY_HOLD,      /* nobody to anybody: connections are held */
};

/* What makes a publish fall due. */
enum load_model {
  LOAD_OPEN,   /* a schedule that nothing changes */
  LOAD_CLOSED, /* the answer to an earlier one: `outstanding` per sender */
  LOAD_ROUNDS, /* each sender to each of its targets `rounds` times: every interval_ns, or closed when that is 0 */
};
enum arrivals { ARRIVALS_CONSTANT, ARRIVALS_POISSON };

#define WORKLOAD_STEPS_MAX 32

/* A part of the measure phase in which the rate goes linearly from one value to another. */
struct rate_segment {
  uint64_t length_ns;
  double from_per_sec, to_per_sec;
};

struct workload {
  const char *name;                    /* "private", "group" */
  const char *target;                  /* URL as given; NULL: the embedded musterd */
  const char *api_url, *navigator_url; /* NULL: derived, not asked */
  const char *driver;                  /* by name; NULL: the target's scheme decides, or juggle */
  const char *app_key;                 /* NULL: made by the embedded server */
  enum topology_kind topology;
  uint32_t clients;
  uint32_t senders;   /* clients 0..senders-1 publish; all of them in a ring, in pairs, of operations */
  uint32_t offline;   /* the last so many clients are provisioned and never connect */
  uint32_t groups;    /* of TOPOLOGY_GROUPS; client i is in group i % groups; 0 or 1: one. Of TOPOLOGY_QUEUE the queues:
                         client i consumes from queue (i - senders) % groups */
  bool shared_groups; /* every client is in every group, and a sender goes round all groups */
  enum load_model load;
  double rate_per_sec; /* publishes, aggregate; of LOAD_OPEN */
  enum arrivals arrivals;
  double ramp_to_per_sec; /* the measure phase goes from rate_per_sec to this; 0: no ramp */
  struct rate_segment step[WORKLOAD_STEPS_MAX];
  uint32_t steps;       /* of the measure phase; 0: none */
  uint32_t outstanding; /* publishes of one sender that await their answer, of LOAD_CLOSED and LOAD_ROUNDS */
  uint32_t in_flight;   /* asked for, of all senders together; 0: senders and outstanding say it */
  uint32_t rounds;
  uint64_t interval_ns;    /* between two publishes of one sender, of LOAD_ROUNDS; 0: as fast as answered */
  uint32_t publishes;      /* the measure phase ends after so many; 0: after duration_ns */
  double max_rate_per_sec; /* publishes that closed loops have room for; 0: chosen, and reported */
  uint64_t warmup_ns, duration_ns, grace_ns;
  bool grace_asked; /* grace_ns is no default: it is waited for in full where more may come */
  uint64_t setup_deadline_ns, connect_deadline_ns, ack_timeout_ns, teardown_deadline_ns; /* lengths */
  uint32_t payload_bytes;
  uint32_t connect_concurrency; /* connections in progress at once, all workers together */
  double connect_per_sec;       /* connections begun per second, all workers together; 0: no bound */
  uint64_t keep_alive_ns;       /* between two keep-alives of a client; 0: as the driver does by itself */
  const char *local_addresses;  /* to connect from, as given; NULL: chosen */
  const char *target_addresses; /* to connect to, as given, at the target's port; NULL: the target's own */
  bool storm;                   /* every client loses its connection storm_at_ns into the measure phase */
  bool storm_by_server;         /* the server ends the connections, and not the clients */
  uint64_t storm_at_ns;
  /* A lost client waits backoff_first_ns before it connects again, twice as long after each failure, backoff_max_ns at
   * most; a random part of it, up to backoff_jitter (0..1), is left out. */
  uint64_t backoff_first_ns, backoff_max_ns;
  double backoff_jitter;
  /* Of a star: the receivers connect only when all was sent, and read what waits for them. */
  bool backlog;
  uint64_t catch_up_deadline_ns; /* length; of a backlog run */
  uint32_t setup_concurrency;
  uint32_t workers; /* 0: one per core */
  uint64_t seed;    /* 0: from the clock, and reported */
  bool store, count, obfuscate;
  bool allow_non_loopback, allow_partial;
  bool tls_insecure; /* accept any certificate */
  const char *tls_ca_file;
  const char *origin;                              /* Origin header of WebSocket upgrades; NULL: the target */
  const char *tls_certificate_file, *tls_key_file; /* of the clients; NULL: none */
  const char *user;                                /* whom all clients log in as; NULL: nobody */
  /* Of MQTT; 0 and NULL: the driver's defaults. */
  const char *mqtt_version, *topic_prefix;
  uint32_t qos, receive_maximum;
  bool keep_session, retain;
  /* Of operations: what one request is made of. */
  const char *operations; /* the scenario; NULL: the driver's own choice */
  uint32_t batch_size, documents, warmup_requests;
  /* Of the embedded server. */
  const char *ack_policy; /* "durable" or "received" */
  uint32_t push_window;   /* musterd's --push-window; 0: its default */
  bool rate_limits;       /* musterd's rate limits stay on */
  uint64_t send_cost_ns;  /* server CPU of one publish to an offline receiver, from an earlier run; 0: not given */
  /* Labels: what the machine cannot tell. */
  const char *environment_label, *database_label;
  /* What the settings come to for the driver: options by their names on the command line, what the target's query asks
   * for, and what of both must be equal in reports that are compared. */
  struct facts options, target_options, key;
};

const char *topology_name(enum topology_kind topology);
const char *load_model_name(enum load_model load);
const char *arrivals_name(enum arrivals arrivals);

/* "mqtt-version 5, qos 1": the options and target options; false when there are none. */
#define WORKLOAD_OPTIONS_TEXT_MAX (2 * FACTS_MAX * (FACT_NAME_MAX + FACT_VALUE_MAX + 2))
bool workload_options_text(const struct workload *workload, char out[WORKLOAD_OPTIONS_TEXT_MAX]);

/* Copies that a server places for one publish: one for each addressed client, online or not, and where the protocol
 * keeps one for the sender (private, groups, room), that one too. */
double workload_copies(const struct workload *workload);
/* Clients that connect. */
uint32_t workload_online(const struct workload *workload);
/* Of them, those that connect before the traffic: in a backlog run the senders, else all. */
uint32_t workload_early(const struct workload *workload);
/* Targets that one sender goes round: receivers of a star, shared groups; else 1. */
uint32_t workload_targets(const struct workload *workload);
/* True when answers and not a schedule make publishes fall due. */
bool workload_is_closed(const struct workload *workload);
/* Shares in_flight out: one sender for each, at most all clients, who then await more than one (rounded down). */
void workload_share_in_flight(struct workload *workload);
/* Publishes after which the measure phase ends, by --count or by rounds; 0: only its length ends it. */
uint64_t workload_limit(const struct workload *workload);
/* The rate of a schedule: of the measure phase in segments (1 at least, WORKLOAD_STEPS_MAX at most), of the warm-up. */
uint32_t workload_segments(const struct workload *workload, struct rate_segment out[WORKLOAD_STEPS_MAX]);
double workload_first_rate(const struct workload *workload);
/* Publishes that a schedule owes in the first elapsed_s seconds of the measure phase. */
double workload_owed(const struct workload *workload, double elapsed_s);

#endif
