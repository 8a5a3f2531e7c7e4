#include "wire/yamux.h"

#include "base/be.h"

enum { VERSION = 0, KNOWN_FLAGS = YAMUX_SYN | YAMUX_ACK | YAMUX_FIN | YAMUX_RST };

bool yamux_read_header(const uint8_t in[YAMUX_HEADER_BYTES], struct yamux_header *out) {
  *out = (struct yamux_header){
      .type = in[1], .flags = be_get16(in + 2), .stream = be_get32(in + 4), .length = be_get32(in + 8)};
  if (in[0] != VERSION || out->type > YAMUX_GO_AWAY || (out->flags & ~KNOWN_FLAGS)) return false;
  bool of_a_stream = out->type == YAMUX_DATA || out->type == YAMUX_WINDOW_UPDATE;
  return of_a_stream == (out->stream != 0);
}

void yamux_write_header(uint8_t out[YAMUX_HEADER_BYTES], const struct yamux_header *header) {
  out[0] = VERSION;
  out[1] = header->type;
  be_put16(out + 2, header->flags);
  be_put32(out + 4, header->stream);
  be_put32(out + 8, header->length);
}
