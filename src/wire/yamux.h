/* yamux: the 12-byte frame header (integers big endian). */
#ifndef MUSTER_WIRE_YAMUX_H
#define MUSTER_WIRE_YAMUX_H

#include <stdbool.h>
#include <stdint.h>

#define YAMUX_HEADER_BYTES 12
#define YAMUX_INITIAL_WINDOW (256U * 1024)

enum yamux_type { YAMUX_DATA = 0, YAMUX_WINDOW_UPDATE = 1, YAMUX_PING = 2, YAMUX_GO_AWAY = 3 };
enum yamux_flag { YAMUX_SYN = 1, YAMUX_ACK = 2, YAMUX_FIN = 4, YAMUX_RST = 8 };
enum yamux_go_away { YAMUX_NORMAL = 0, YAMUX_PROTOCOL_ERROR = 1, YAMUX_INTERNAL_ERROR = 2 };

struct yamux_header {
  uint8_t type;    /* enum yamux_type */
  uint16_t flags;  /* enum yamux_flag */
  uint32_t stream; /* 0 for PING and GO_AWAY */
  uint32_t length; /* DATA: bytes behind the header; WINDOW_UPDATE: more credit; PING: a value; GO_AWAY: the reason */
};

/* False: another version, an unknown type or flag, or a stream id where none belongs (and the other way round). */
bool yamux_read_header(const uint8_t in[YAMUX_HEADER_BYTES], struct yamux_header *out);
void yamux_write_header(uint8_t out[YAMUX_HEADER_BYTES], const struct yamux_header *header);

#endif
