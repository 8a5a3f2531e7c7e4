#include "measure/tally.h"

#include <inttypes.h>
#include <stddef.h>

void codes_add(struct codes *codes, int32_t code, uint64_t count) {
  if (count == 0) return;
  for (uint32_t i = 0; i < codes->used; i++) {
    if (codes->entry[i].code != code) continue;
    codes->entry[i].count += count;
    return;
  }
  if (codes->used == CODES_MAX) {
    codes->others += count;
    return;
  }
  codes->entry[codes->used].code = code;
  codes->entry[codes->used].count = count;
  codes->used++;
}

void codes_merge(struct codes *into, const struct codes *from) {
  for (uint32_t i = 0; i < from->used; i++)
    codes_add(into, from->entry[i].code, from->entry[i].count);
  into->others += from->others;
}

uint64_t codes_count(const struct codes *codes, int32_t code) {
  for (uint32_t i = 0; i < codes->used; i++) {
    if (codes->entry[i].code == code) return codes->entry[i].count;
  }
  return 0;
}

uint64_t codes_total(const struct codes *codes) {
  uint64_t total = codes->others;
  for (uint32_t i = 0; i < codes->used; i++)
    total += codes->entry[i].count;
  return total;
}

const char *cause_name(int32_t code) {
  switch (code) {
  case CAUSE_CONNECT_REFUSED:
    return "connect_refused";
  case CAUSE_CONNECT_TIMEOUT:
    return "connect_timeout";
  case CAUSE_CONNECT_ERROR:
    return "connect_error";
  case CAUSE_TLS:
    return "tls";
  case CAUSE_UPGRADE:
    return "upgrade";
  case CAUSE_CLOSED_EARLY:
    return "closed_early";
  case CAUSE_PROTOCOL:
    return "protocol";
  case CAUSE_NO_ANSWER:
    return "no_answer";
  case CAUSE_CONNECTION_LOST:
    return "connection_lost";
  case CAUSE_NOT_CONNECTED:
    return "not_connected";
  case CAUSE_BLOCKED:
    return "blocked";
  case CAUSE_CLOSED_BY_PEER:
    return "closed_by_peer";
  case CAUSE_RESET:
    return "reset";
  case CAUSE_KICKED:
    return "kicked";
  case CAUSE_KEEP_ALIVE:
    return "keep_alive";
  case CAUSE_INTERRUPTED:
    return "interrupted";
  case CAUSE_GENERATOR_LATE:
    return "generator_late";
  default:
    return NULL;
  }
}

void tally_merge(struct tally *into, const struct tally *from) {
  into->connections.attempted += from->connections.attempted;
  into->connections.established += from->connections.established;
  into->connections.reconnected += from->connections.reconnected;
  codes_merge(&into->connections.failed, &from->connections.failed);
  codes_merge(&into->connections.dropped, &from->connections.dropped);

  into->publishes.scheduled += from->publishes.scheduled;
  into->publishes.attempted += from->publishes.attempted;
  into->publishes.acked += from->publishes.acked;
  into->publishes.acked_late += from->publishes.acked_late;
  codes_merge(&into->publishes.unsent, &from->publishes.unsent);
  codes_merge(&into->publishes.rejected, &from->publishes.rejected);
  codes_merge(&into->publishes.timed_out, &from->publishes.timed_out);

  into->deliveries.expected += from->deliveries.expected;
  into->deliveries.observed += from->deliveries.observed;
  into->deliveries.lost += from->deliveries.lost;
  into->deliveries.duplicate += from->deliveries.duplicate;
  into->deliveries.reordered += from->deliveries.reordered;
  into->deliveries.corrupt += from->deliveries.corrupt;
  into->deliveries.unexpected += from->deliveries.unexpected;
  into->deliveries.late += from->deliveries.late;
  into->deliveries.unacked_delivered += from->deliveries.unacked_delivered;
  into->deliveries.recovered += from->deliveries.recovered;
  into->deliveries.overlap += from->deliveries.overlap;

  into->bytes_sent += from->bytes_sent;
  into->bytes_received += from->bytes_received;
  for (int i = 0; i < TALLY_EXTRAS; i++)
    into->extra[i] += from->extra[i];
}

enum status tally_check_connections(const struct tally *tally, bool has_acks, struct err *err) {
  (void)has_acks;
  uint64_t failed = codes_total(&tally->connections.failed);
  uint64_t dropped = codes_total(&tally->connections.dropped);
  if (tally->connections.attempted != tally->connections.established + failed) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): connections attempted %" PRIu64 " is not established %" PRIu64
        " + failed %" PRIu64,
        tally->connections.attempted, tally->connections.established, failed);
  }
  if (dropped > tally->connections.established + tally->connections.reconnected) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): connections dropped %" PRIu64 " is above established %" PRIu64
        " + reconnected %" PRIu64,
        dropped, tally->connections.established, tally->connections.reconnected);
  }
  return STATUS_OK;
}

enum status tally_check_publishes(const struct tally *tally, bool has_acks, struct err *err) {
  uint64_t unsent = codes_total(&tally->publishes.unsent);
  uint64_t rejected = codes_total(&tally->publishes.rejected);
  uint64_t timed_out = codes_total(&tally->publishes.timed_out);
  if (tally->publishes.scheduled != tally->publishes.attempted + unsent) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): publishes scheduled %" PRIu64 " is not attempted %" PRIu64
        " + unsent %" PRIu64,
        tally->publishes.scheduled, tally->publishes.attempted, unsent);
  }
  uint64_t answered = tally->publishes.acked + rejected + timed_out;
  if (has_acks && tally->publishes.attempted != answered) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): publishes attempted %" PRIu64 " is not acked %" PRIu64
        " + rejected %" PRIu64 " + timed_out %" PRIu64,
        tally->publishes.attempted, tally->publishes.acked, rejected, timed_out);
  }
  if (tally->publishes.acked_late > tally->publishes.acked) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): publishes acked_late %" PRIu64 " is above acked %" PRIu64,
        tally->publishes.acked_late, tally->publishes.acked);
  }
  if (!has_acks && answered != 0) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): acked %" PRIu64 ", rejected %" PRIu64 " and timed_out %" PRIu64
        " must be 0 where the protocol has no ACK",
        tally->publishes.acked, rejected, timed_out);
  }
  return STATUS_OK;
}

enum status tally_check_deliveries(const struct tally *tally, bool has_acks, struct err *err) {
  if (tally->deliveries.expected != tally->deliveries.observed + tally->deliveries.lost) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): deliveries expected %" PRIu64 " is not observed %" PRIu64
        " + lost %" PRIu64,
        tally->deliveries.expected, tally->deliveries.observed, tally->deliveries.lost);
  }
  uint64_t sent = has_acks ? tally->publishes.acked : tally->publishes.attempted;
  if (tally->deliveries.expected && sent == 0) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): deliveries expected %" PRIu64 " of no %s publish",
        tally->deliveries.expected, has_acks ? "acked" : "attempted");
  }
  if (!tally->deliveries.late_is_of_all && tally->deliveries.late > tally->deliveries.observed) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): deliveries late %" PRIu64 " is above observed %" PRIu64,
        tally->deliveries.late, tally->deliveries.observed);
  }
  /* Reordered is known before it is known whether the publish was acked. */
  uint64_t came = tally->deliveries.observed + tally->deliveries.unacked_delivered + tally->deliveries.unexpected +
                  tally->deliveries.recovered;
  if (tally->deliveries.reordered > came) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): deliveries reordered %" PRIu64 " is above the %" PRIu64
        " that came",
        tally->deliveries.reordered, came);
  }
  return STATUS_OK;
}

enum status tally_check(const struct tally *tally, bool has_acks, struct err *err) {
  enum status status = tally_check_connections(tally, has_acks, err);
  if (status == STATUS_OK) status = tally_check_publishes(tally, has_acks, err);
  if (status == STATUS_OK) status = tally_check_deliveries(tally, has_acks, err);
  return status;
}
