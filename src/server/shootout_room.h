/* The inside of the shootout server. shootout.c owns the threads; shootout_fan_out.c carries broadcasts from the
 * sender's thread to all others and the word that it is done back; shootout_session.c is one connection.
 * Everything belongs to one thread but the inbox (its lock), the statistics and the house's atomics. */
#ifndef MUSTER_SERVER_SHOOTOUT_ROOM_H
#define MUSTER_SERVER_SHOOTOUT_ROOM_H

#include "net/stream.h"
#include "net/tls.h"
#include "net/ws.h"
#include "server/doors.h"
#include "server/server.h"
#include "wire/shootout.h"

#include <pthread.h>
#include <stdatomic.h>

struct shootout_broadcast;
struct shootout_loop;
struct shootout;

/* A group of paths whose connections reach each other. */
enum shootout_room { ROOM_JSON, ROOM_BINARY, ROOM_PHOENIX, ROOM_CABLE, ROOM_COUNT };

struct shootout_stats {
  atomic_uint_fast64_t connections, members; /* now */
  atomic_uint_fast64_t accepted, upgraded, echoes, broadcasts, copies, results, pauses, protocol_errors, deadlines,
      slow_readers_dropped;
};

enum shootout_state { SHOOTOUT_HTTP, SHOOTOUT_OPEN, SHOOTOUT_CLOSING, SHOOTOUT_GONE };

/* Why reading is paused. */
enum shootout_pause {
  SHOOTOUT_PAUSE_OUTPUT = 1,  /* output waits */
  SHOOTOUT_PAUSE_RESULTS = 2, /* too much is under way to other threads */
  SHOOTOUT_PAUSE_STOP = 4,
};

struct shootout_session {
  struct stream stream;
  struct ws ws;
  struct timer timer; /* HTTP: deadline; OPEN: while output waits; CLOSING: the close */
  struct shootout_loop *loop;
  struct shootout_session *next, **link;               /* of all sessions of the loop */
  struct shootout_session *next_member, **member_link; /* of the room; link NULL: no member */
  uint64_t written, moved; /* bytes ever given to the stream; that had left it at moved_ns */
  uint64_t moved_ns;
  size_t awaited_bytes; /* that they hold */
  uint32_t awaited;     /* broadcasts whose result is due: the memory stays until they are back */
  uint8_t state;        /* enum shootout_state */
  uint8_t room;         /* enum shootout_room */
  uint8_t protocol;     /* enum shootout_protocol of its text (or only) frames */
  uint8_t pauses;       /* set of enum shootout_pause */
};

/* architecture.md: an idle plain connection costs at most 512 bytes of user space. */
_Static_assert(sizeof(struct shootout_session) <= 320, "idle session budget");

struct shootout_note {
  struct shootout_note *next;
  struct shootout_broadcast *broadcast;
  bool done; /* all threads have written: for the sender's thread */
};

struct shootout_loop {
  struct shootout *house;
  struct loop *loop;
  struct tls_context *tls;
  struct doors doors;
  struct watch wake;
  struct timer cable_ping;
  struct shootout_session *sessions, *members[ROOM_COUNT];
  pthread_mutex_t lock;
  struct shootout_note *inbox, **inbox_end;
  struct shootout_stats stats;
  pthread_t thread;
  uint32_t number;
  bool started;
};

struct shootout {
  const struct server_config *config;
  uint32_t count;
  atomic_bool stopping;
  atomic_uint drained;            /* loops that read no more */
  atomic_uint_fast64_t in_flight; /* broadcasts whose result was not written yet */
  struct shootout_loop loops[];
};

/* ---- shootout_fan_out.c ---- */

/* Sends a payload to everybody in the sender's room and, once that is done on all threads, the result to the sender.
 * False when memory is out. */
bool shootout_broadcast(
    struct shootout_session *sender, enum shootout_protocol protocol, const struct shootout_message *request);
/* Handles what other threads left in the inbox. */
void shootout_take_notes(struct shootout_loop *loop);
void shootout_wake(struct shootout_loop *loop);
/* Bytes of a WebSocket frame around a message, and the frame itself. */
size_t shootout_frame_size(const struct shootout_text *text);
void shootout_write_frame(uint8_t *out, enum shootout_protocol protocol, const struct shootout_text *text);

/* ---- shootout_session.c ---- */

void shootout_accept(struct shootout_loop *loop, int fd);
void shootout_close(struct shootout_session *session, bool reset);
/* Writes a close frame and ends the session a little later. */
void shootout_finish(struct shootout_session *session, uint16_t code, const char *reason);
void shootout_pause(struct shootout_session *session, enum shootout_pause why);
/* Gives a finished frame to a session; one whose output would pass its bound is dropped. False when it was not given.
 */
bool shootout_give(struct shootout_session *session, const uint8_t *frame, size_t len);
/* A broadcast of this session, which held so many bytes, is done: sends the result. */
void shootout_result(struct shootout_session *session, size_t held_bytes, const uint8_t *frame, size_t len);

/* The counters of all loops as JSON text, cut to size. */
void shootout_metrics(const struct shootout *house, char *out, size_t size);

#endif
