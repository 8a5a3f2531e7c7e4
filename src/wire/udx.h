/* UDX version 3: packets and frames (all integers big endian). One packet fills one datagram: a header with both
 * connection ids, the sequence number and two stream ids, then frames to the end. Readers hand out views into the
 * datagram. */
#ifndef MUSTER_WIRE_UDX_H
#define MUSTER_WIRE_UDX_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UDX_VERSION 3
#define UDX_CID_MAX 20
#define UDX_HEADER_MAX (18 + 2 * UDX_CID_MAX)
#define UDX_STREAM_HEAD_BYTES 12
#define UDX_ACK_RANGES_MAX 255

struct udx_cid {
  uint8_t len; /* 0 to 20 */
  uint8_t bytes[UDX_CID_MAX];
};

struct udx_packet {
  struct udx_cid to, from; /* what the receiver and the sender of the packet are known by */
  uint32_t sequence;       /* 0 in packets that carry no data */
  uint32_t to_stream;      /* the receiver's id of the stream; 0: not known */
  uint32_t from_stream;    /* the sender's id */
  struct view frames;
};

enum udx_frame_type {
  UDX_PADDING = 0x00,
  UDX_PING = 0x01,
  UDX_ACK = 0x02,
  UDX_STREAM = 0x03,
  UDX_WINDOW_UPDATE = 0x04,
  UDX_MAX_DATA = 0x05,
  UDX_RESET_STREAM = 0x06,
  UDX_MAX_STREAMS = 0x07,
  UDX_MTU_PROBE = 0x08, /* the rest of the datagram */
  UDX_PATH_CHALLENGE = 0x09,
  UDX_PATH_RESPONSE = 0x0a,
  UDX_CONNECTION_CLOSE = 0x0b,
  UDX_STOP_SENDING = 0x0d,
  UDX_DATA_BLOCKED = 0x0e,
  UDX_STREAM_DATA_BLOCKED = 0x0f,
  UDX_NEW_CONNECTION_ID = 0x10,
  UDX_RETIRE_CONNECTION_ID = 0x11,
};

enum udx_stream_flag { UDX_FIN = 1, UDX_SYN = 2 };

enum udx_error {
  UDX_ERROR_NONE = 0,
  UDX_ERROR_INTERNAL = 1,
  UDX_ERROR_STREAM_LIMIT = 2,
  UDX_ERROR_FLOW_CONTROL = 3,
  UDX_ERROR_PROTOCOL = 4,
  UDX_ERROR_MIGRATION = 5,
  UDX_ERROR_TIMEOUT = 6,
};

struct udx_frame {
  uint8_t type;        /* enum udx_frame_type */
  uint8_t flags;       /* STREAM */
  uint8_t range_count; /* ACK: beyond the first */
  uint16_t delay_ms;   /* ACK: since the largest came */
  uint32_t largest;    /* ACK */
  uint32_t first;      /* ACK: numbers acknowledged from largest downwards */
  uint32_t stream;     /* STOP_SENDING, STREAM_DATA_BLOCKED */
  uint32_t code;       /* RESET_STREAM, STOP_SENDING, CONNECTION_CLOSE */
  uint64_t offset;     /* STREAM */
  uint64_t limit;   /* WINDOW_UPDATE (low 32 bits), MAX_DATA, MAX_STREAMS, the BLOCKED ones; NEW and RETIRE: number */
  struct view data; /* STREAM; ACK: ranges; PATH: 8 bytes; CONNECTION_CLOSE: reason; NEW_CONNECTION_ID: the id */
};

/* False for anything that is no version 3 packet, a bad frame included. */
bool udx_read_packet(const uint8_t *data, size_t len, struct udx_packet *out);
/* The next frame of a packet that was read; false at the end. Takes it off the view. */
bool udx_next_frame(struct view *frames, struct udx_frame *out);
/* A packet that counts in acknowledgements: a STREAM frame has data, SYN or FIN. *syn: any of them has SYN. */
bool udx_bears_data(struct view frames, bool *syn);

/* Walks the ranges of an ACK from the highest: low and high are both acknowledged. False at the end, which comes early
 * when a range would fall below 0. */
struct udx_ack_walk {
  uint64_t cursor; /* one above the next number that is not told yet */
  struct view rest;
  uint32_t first;
};
struct udx_ack_walk udx_ack_begin(const struct udx_frame *ack);
bool udx_ack_next(struct udx_ack_walk *walk, uint32_t *low, uint32_t *high);

struct udx_range {
  uint32_t low, high; /* both included */
};

/* Writers return the position behind what they wrote. The caller has seen to the room. */
uint8_t *udx_write_header(uint8_t *at, const struct udx_packet *packet); /* at most UDX_HEADER_MAX */
/* The caller puts len bytes of data behind it. */
uint8_t *udx_write_stream_head(uint8_t *at, uint8_t flags, uint64_t offset, uint16_t len);
/* Ranges from the highest to the lowest, at least one, apart from each other; those whose gap does not fit are left
 * out with all below them. 7 + 5 * count bytes. */
uint8_t *udx_write_ack(uint8_t *at, const struct udx_range *ranges, size_t count, uint16_t delay_ms);
uint8_t *udx_write_window_update(uint8_t *at, uint64_t limit);
uint8_t *udx_write_max_data(uint8_t *at, uint64_t limit);
uint8_t *udx_write_reset(uint8_t *at, uint32_t code);
uint8_t *udx_write_path_response(uint8_t *at, struct view challenge);
uint8_t *udx_write_close(uint8_t *at, uint32_t code, struct view reason);
uint8_t *udx_write_stream_data_blocked(uint8_t *at, uint32_t stream, uint64_t limit);

#endif
