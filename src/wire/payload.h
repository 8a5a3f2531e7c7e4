/* The header that muster puts into every message it publishes, so that a recipient can account for it without knowing
 * anything else (methodology.md, Phases): run, phase, sender, sequence, scheduled and written time, size, checksum.
 *
 * Binary form, 48 bytes little-endian, then padding up to the asked size:
 *   0 'M' 'S'   2 version (1)   3 phase   4 sender u32   8 run_id u64   16 sequence u32   20 size u32
 *   24 scheduled_ns u64   32 written_ns u64   40 checksum u64: XXH3-64 of bytes 0..39 with XXH3-64 of the padding as
 * seed
 * Text form, for protocols whose messages are JSON text: {"content":"H"} where H is base64url of the 48 bytes (64
 * characters) and then padding characters; the checksum covers bytes 0..39 and the padding characters. Bare form, for
 * protocols that carry it inside a JSON text of their own: H alone, so that it needs no escapes. All stand at fixed
 * offsets, so nothing is parsed on delivery.
 */
#ifndef MUSTER_WIRE_PAYLOAD_H
#define MUSTER_WIRE_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_HEADER_BYTES 48
#define PAYLOAD_BINARY_MIN PAYLOAD_HEADER_BYTES
#define PAYLOAD_TEXT_MIN 78 /* {"content":"" + 64 + "} */
#define PAYLOAD_BARE_MIN 64

enum payload_phase { PAYLOAD_WARM_UP = 1, PAYLOAD_MEASURE = 2 };

struct payload {
  uint64_t run_id;
  uint64_t scheduled_ns, written_ns; /* CLOCK_MONOTONIC of the sender's host */
  uint32_t sender, sequence;
  uint32_t size; /* of the whole payload, header included */
  uint8_t phase; /* enum payload_phase */
};

enum payload_form { PAYLOAD_TEXT, PAYLOAD_BINARY, PAYLOAD_BARE };

enum payload_result {
  PAYLOAD_OK,
  PAYLOAD_FOREIGN, /* not one of muster's: no such header */
  PAYLOAD_CORRUPT, /* muster's, but the checksum, the size, the version or the phase is wrong */
};

/* Fills out with exactly payload->size bytes, which must be at least the form's minimum; phase must be one of the two.
 */
void payload_write(enum payload_form form, uint8_t *out, const struct payload *payload);
/* *out is filled for PAYLOAD_OK only. */
enum payload_result payload_read(enum payload_form form, const uint8_t *data, size_t len, struct payload *out);

#endif
