/* What a driver is told of a workload, as far as it is known before anything is started. */
#ifndef MUSTER_LOAD_SETTINGS_H
#define MUSTER_LOAD_SETTINGS_H

#include "driver/driver.h"
#include "report/workload.h"

/* What only one protocol asks. */
struct ricochet_settings settings_ricochet(const struct workload *workload);
struct mqtt_settings settings_mqtt(const struct workload *workload);

/* Tells the workload what its settings come to for this driver: its facts. */
void settings_describe(struct workload *workload, const struct driver *driver);

/* What the driver can do with these settings; prepare may find that the server leaves less. */
unsigned settings_capabilities(const struct workload *workload, const struct driver *driver);

#endif
