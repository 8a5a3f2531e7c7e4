#include "driver/name.h"

struct view name_of_destination(
    char *out, const char *prefix, const struct client *client, const struct publish *publish) {
  switch (publish->to) {
  case PUBLISH_TO_ALL:
    return name_whole(out, prefix, ".all");
  case PUBLISH_TO_ROOM:
    return name_whole(out, prefix, ".room");
  case PUBLISH_TO_GROUP:
    return name_numbered(out, prefix, ".group.", publish->recipient);
  case PUBLISH_TO_QUEUE:
    return name_numbered(out, prefix, ".queue.", publish->recipient);
  case PUBLISH_TO_SELF:
    return name_numbered(out, prefix, ".client.", client->index);
  default:
    return name_numbered(out, prefix, ".client.", publish->recipient);
  }
}

struct view name_of_subscription(char *out, const char *prefix, const struct client *client, uint32_t i) {
  const struct driver_settings *settings = &client->run->settings;
  uint32_t queue;
  if (driver_queue_of(settings, client->index, &queue)) return name_numbered(out, prefix, ".queue.", queue);
  if (settings->broadcast) return name_whole(out, prefix, ".all");
  if (settings->room_members > 0) return name_whole(out, prefix, ".room");
  if (settings->groups == 0) return name_numbered(out, prefix, ".client.", client->index);
  uint32_t group = settings->shared_groups ? i : client->index % settings->groups;
  return name_numbered(out, prefix, ".group.", group);
}

uint32_t name_subscriptions(const struct driver_settings *settings) {
  return settings->groups > 0 && settings->shared_groups && !settings->broadcast ? settings->groups : 1;
}
