/* TLS through OpenSSL with released buffers (SSL_MODE_RELEASE_BUFFERS): a context for all connections of a process,
 * a session for each stream, which stream.c drives. */
#ifndef MUSTER_NET_TLS_H
#define MUSTER_NET_TLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct tls_context;

/* verify false accepts any certificate (self-signed test servers); ca_file NULL uses the system's. */
enum status tls_client_context(struct tls_context **out, bool verify, const char *ca_file, struct err *err);
/* Lets the clients of a context show a certificate, of PEM files. */
enum status tls_client_certificate(
    struct tls_context *context, const char *certificate_file, const char *key_file, struct err *err);
enum status tls_server_context(
    struct tls_context **out, const char *certificate_file, const char *key_file, struct err *err);
void tls_context_free(struct tls_context *context);

/* Version and cipher of the last handshake of this context ("TLSv1.3 TLS_AES_256_GCM_SHA384"), or "". */
const char *tls_context_facts(const struct tls_context *context);
/* Why the last session of this context that ended with STREAM_END_TLS did so ("certificate verify failed: self-signed
 * certificate"), or "". */
const char *tls_context_failure(const struct tls_context *context);

#endif
