/* Visits: clients of the population log in and leave again, before the workers start or after they have ended, so that
 * the server keeps what comes for them while they are away, or forgets them. They speak through the driver's own
 * callbacks: `established` ends a visit, and `closing` says the good-bye, at which the server is to close. The driver
 * sees in client->visit what it is to leave behind. Blocking, like a dialogue. */
#ifndef MUSTER_DRIVER_VISIT_H
#define MUSTER_DRIVER_VISIT_H

#include "driver/driver.h"

/* The clients first..end-1, as many at a time as setup_concurrency says, until deadline_ns (absolute) at the latest.
 * STATUS_OK when each was established; the first that is not ends the rest. */
enum status visit_to_be_known(
    struct driver_run *run, uint32_t first, uint32_t end, uint64_t deadline_ns, struct err *err);
/* The same to be forgotten, where one that is not let in leaves the others alone. Returns how many stay behind. */
uint32_t visit_to_be_forgotten(struct driver_run *run, uint32_t first, uint32_t end, uint64_t deadline_ns);

#endif
