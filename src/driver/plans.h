/* The part of prepare that asks no server, for tests that are the server themselves: fills run->population, address,
 * server_name and tls. The driver's release undoes it, also after a failure. */
#ifndef MUSTER_DRIVER_PLANS_H
#define MUSTER_DRIVER_PLANS_H

#include "driver/driver.h"

enum status mqtt_make_plan(struct driver_run *run, struct err *err);
enum status nats_make_plan(struct driver_run *run, struct err *err);
enum status redis_make_plan(struct driver_run *run, struct err *err);
enum status stomp_make_plan(struct driver_run *run, struct err *err);

#endif
