#include "load/settings.h"

struct mqtt_settings settings_mqtt(const struct workload *workload) {
  return (struct mqtt_settings){
      .version = workload->mqtt_version,
      .topic_prefix = workload->topic_prefix,
      .qos = workload->qos,
      .receive_maximum = workload->receive_maximum,
      .keep_session = workload->keep_session,
      .retain = workload->retain,
  };
}

struct ricochet_settings settings_ricochet(const struct workload *workload) {
  return (struct ricochet_settings){
      .scenario = workload->operations,
      .batch_size = workload->batch_size,
      .documents = workload->documents,
      .warmup_requests = workload->warmup_requests,
  };
}

/* What follows from the workload alone. */
static struct driver_settings settings_of(const struct workload *workload) {
  struct driver_settings settings = {
      .mqtt = settings_mqtt(workload),
      .ricochet = settings_ricochet(workload),
      .queues = workload->topology == TOPOLOGY_QUEUE ? workload_targets(workload) : 0,
      .backlog = workload->backlog,
  };
  bool has_url = workload->target && url_parse(workload->target, &settings.url, NULL) == STATUS_OK;
  if (!has_url) settings.url = (struct url){0};
  return settings;
}

void settings_describe(struct workload *workload, const struct driver *driver) {
  struct driver_settings settings = settings_of(workload);
  struct driver_facts facts = {0};
  if (driver->describe) driver->describe(&settings, &facts);
  workload->options = facts.options;
  workload->target_options = facts.target;
  workload->key = facts.key;
}

unsigned settings_capabilities(const struct workload *workload, const struct driver *driver) {
  struct driver_settings settings = settings_of(workload);
  return driver->without ? driver->capabilities & ~driver->without(&settings) : driver->capabilities;
}
