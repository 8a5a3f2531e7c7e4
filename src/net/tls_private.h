/* What stream.c drives: one TLS session over a descriptor. Ciphertext that came is fed, what leaves is sent straight
 * to the socket. */
#ifndef MUSTER_NET_TLS_PRIVATE_H
#define MUSTER_NET_TLS_PRIVATE_H

#include "net/tls.h"

#include <stddef.h>
#include <stdint.h>

struct tls_session;

enum tls_result {
  TLS_DONE,
  TLS_WANT_READ,  /* feed more */
  TLS_WANT_WRITE, /* the socket is full */
  TLS_CLOSED,     /* close_notify came */
  TLS_FAILED,     /* handshake or record error */
  TLS_BROKEN,     /* the socket failed: *error holds errno */
};

/* server_name may be NULL on the server's side. */
enum status tls_session_create(
    struct tls_session **out, struct tls_context *context, int fd, const char *server_name, struct err *err);
/* notify: says close_notify when the handshake was done. */
void tls_session_free(struct tls_session *session, bool notify);

/* Ciphertext to be read next; it is borrowed until tls_keep. */
void tls_feed(struct tls_session *session, const uint8_t *data, size_t len);
/* Copies what was not read yet of the fed bytes; false when memory is out. */
bool tls_keep(struct tls_session *session);

/* True when fed bytes are left, or a read waits for the socket to take output: tls_read may then go on without more. */
bool tls_unfinished(const struct tls_session *session);

enum tls_result tls_handshake(struct tls_session *session, int *error);
enum tls_result tls_read(struct tls_session *session, uint8_t *data, size_t room, size_t *got, int *error);
enum tls_result tls_write(struct tls_session *session, const uint8_t *data, size_t len, size_t *sent, int *error);

#endif
