// room: wire
/* A stream of MQTT packets, first byte: the version. What a reader accepts must be written as a packet that is read
 * and written the same again. */
#include "wire/mqtt.h"

#include "../support/mqtt_rewrite.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(enum mqtt_version version, const struct mqtt_packet *packet) {
  uint8_t *first = malloc(packet->size + 8), *second = malloc(packet->size + 16);
  if (!first || !second) abort();
  size_t len = mqtt_rewrite(version, packet, first);
  if (len > 0) {
    struct mqtt_packet again;
    if (mqtt_read_packet(first, len, UINT32_MAX, &again) != MQTT_OK || again.size != len) abort();
    if (again.type != packet->type) abort();
    if (mqtt_rewrite(version, &again, second) != len || memcmp(first, second, len) != 0) abort();
  }
  free(first);
  free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  enum mqtt_version version = data[0] & 1 ? MQTT_5 : MQTT_3_1_1;
  uint8_t *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data + 1, size - 1);
  size_t used = 0;
  struct mqtt_packet packet;
  while (mqtt_read_packet(copy + used, size - 1 - used, 1 << 20, &packet) == MQTT_OK) {
    check(version, &packet);
    mqtt_reason_name((int32_t)packet.size);
    used += packet.size;
  }
  free(copy);
  return 0;
}
