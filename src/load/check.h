/* The check before a run (load/run.h) by its parts, for whoever shows what it goes by. */
#ifndef MUSTER_LOAD_CHECK_H
#define MUSTER_LOAD_CHECK_H

#include "base/err.h"
#include "driver/driver.h"
#include "report/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* What the embedded server keeps for a user who is offline: so many of the newest messages, so long; a test holds them
 * against the server's own. */
#define EMBEDDED_BACKLOG_MESSAGES 65536
#define EMBEDDED_BACKLOG_MESSAGES_IN_ALL (UINT64_C(1) << 26)
#define EMBEDDED_ADDRESSES_MAX 16 /* that it listens on, its first one among them */
#define EMBEDDED_BACKLOG_NS (600 * UINT64_C(1000000000))

struct needs {
  uint32_t connections, workers;
  uint64_t worker_descriptors;                 /* of the fullest worker */
  uint64_t nofile_hard;                        /* that one process may have */
  uint64_t accounting_bytes;                   /* ledgers and clients, all workers together */
  uint64_t kernel_bytes;                       /* of the ends of connections that are on this machine */
  uint64_t server_bytes;                       /* of the embedded server; 0: a target was given */
  uint64_t available_bytes;                    /* UINT64_MAX: not known */
  uint32_t source_addresses, target_addresses; /* that the connections leave from, go to */
  uint64_t source_ports;                       /* of each pair of them */
};

/* The part of run_check that does not look at this machine. */
enum status check_workload(const struct workload *workload, const struct driver *driver, struct err *err);

/* Of a sound workload. STATUS_USAGE when nothing could hold its accounting, or --local-addr is no address of ours. */
enum status check_needs(
    const struct workload *workload, const struct driver *driver, struct needs *out, struct err *err);

#endif
