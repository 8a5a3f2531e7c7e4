/* What prepare and release do in every driver, whatever it speaks: the address and the TLS of the target, and what a
 * run holds of its own. */
#ifndef MUSTER_DRIVER_TARGET_H
#define MUSTER_DRIVER_TARGET_H

#include "driver/driver.h"

/* Fills run->server_name and run->address from the target's URL, and with tls run->tls, with the client certificate
 * that was asked for. */
enum status target_open(struct driver_run *run, bool tls, struct err *err);

/* Frees run->tls, and the arena with the population in it. Harmless after a failure and twice. */
void target_release(struct driver_run *run);

#endif
