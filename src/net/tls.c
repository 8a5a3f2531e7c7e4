#include "net/tls.h"

#include "base/buf.h"
#include "net/tls_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct tls_context {
  SSL_CTX *ssl;
  BIO_METHOD *transport;
  bool client;
  bool verify;
  char facts[96];
  char failure[256];
};

struct tls_session {
  SSL *ssl;
  struct tls_context *context;
  const uint8_t *fed; /* borrowed, or in kept */
  size_t fed_len;
  struct buf kept;
  int fd;
  int error; /* errno of the last send */
  bool established;
  bool broken;      /* OpenSSL must not be asked to say goodbye */
  bool wants_write; /* the last read or handshake step waits for the socket */
};

static int transport_write(BIO *bio, const char *data, int len) {
  struct tls_session *session = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  ssize_t n;
  do {
    n = send(session->fd, data, (size_t)len, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return (int)n;
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    BIO_set_retry_write(bio);
  } else {
    session->error = errno;
  }
  return -1;
}

static int transport_read(BIO *bio, char *out, int room) {
  struct tls_session *session = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (session->fed_len == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t n = session->fed_len < (size_t)room ? session->fed_len : (size_t)room;
  memcpy(out, session->fed, n);
  session->fed += n;
  session->fed_len -= n;
  return (int)n;
}

static long transport_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *make_transport(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster stream");
  if (!method) return NULL;
  BIO_meth_set_write(method, transport_write);
  BIO_meth_set_read(method, transport_read);
  BIO_meth_set_ctrl(method, transport_control);
  return method;
}

/* The newest message in OpenSSL's queue, or the system's that began it; empties it. */
static const char *openssl_reason(void) {
  unsigned long first = ERR_peek_error(), code = ERR_peek_last_error();
  ERR_clear_error();
  if (first && ERR_SYSTEM_ERROR(first)) return strerror((int)ERR_GET_REASON(first));
  const char *reason = code ? ERR_reason_error_string(code) : NULL;
  return reason ? reason : "no reason given";
}

static struct tls_context *make_context(const SSL_METHOD *method, struct err *err) {
  struct tls_context *context = calloc(1, sizeof *context);
  if (context) context->transport = make_transport();
  if (context && context->transport) context->ssl = SSL_CTX_new(method);
  if (!context || !context->ssl) {
    tls_context_free(context);
    err_set(err, STATUS_MEMORY, "cannot make a TLS context: %s", openssl_reason());
    return NULL;
  }
  SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
  SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(
      context->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context->ssl, 1);
  return context;
}

enum status tls_client_context(struct tls_context **out, bool verify, const char *ca_file, struct err *err) {
  struct tls_context *context = make_context(TLS_client_method(), err);
  if (!context) return STATUS_MEMORY;
  context->client = true;
  context->verify = verify;
  SSL_CTX_set_verify(context->ssl, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
  int loaded = 1;
  if (verify) {
    loaded = ca_file ? SSL_CTX_load_verify_locations(context->ssl, ca_file, NULL)
                     : SSL_CTX_set_default_verify_paths(context->ssl);
  }
  if (loaded == 1) {
    *out = context;
    return STATUS_OK;
  }
  tls_context_free(context);
  return err_set(err, STATUS_USAGE, "cannot read the certificate authorities in %s: %s",
      ca_file ? ca_file : "the system's store", openssl_reason());
}

static enum status use_certificate(
    struct tls_context *context, const char *certificate_file, const char *key_file, struct err *err) {
  if (SSL_CTX_use_certificate_chain_file(context->ssl, certificate_file) != 1) {
    return err_set(
        err, STATUS_USAGE, "cannot read the certificate in %s (PEM): %s", certificate_file, openssl_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context->ssl, key_file, SSL_FILETYPE_PEM) != 1) {
    return err_set(err, STATUS_USAGE, "cannot read the private key in %s (PEM): %s", key_file, openssl_reason());
  }
  if (SSL_CTX_check_private_key(context->ssl) == 1) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "the key in %s does not belong to the certificate in %s", key_file, certificate_file);
}

enum status tls_client_certificate(
    struct tls_context *context, const char *certificate_file, const char *key_file, struct err *err) {
  return use_certificate(context, certificate_file, key_file, err);
}

enum status tls_server_context(
    struct tls_context **out, const char *certificate_file, const char *key_file, struct err *err) {
  struct tls_context *context = make_context(TLS_server_method(), err);
  if (!context) return STATUS_MEMORY;
  enum status status = use_certificate(context, certificate_file, key_file, err);
  if (status != STATUS_OK) {
    tls_context_free(context);
    return status;
  }
  *out = context;
  return STATUS_OK;
}

void tls_context_free(struct tls_context *context) {
  if (!context) return;
  SSL_CTX_free(context->ssl);
  BIO_meth_free(context->transport);
  free(context);
}

const char *tls_context_facts(const struct tls_context *context) {
  return context->facts;
}

const char *tls_context_failure(const struct tls_context *context) {
  return context->failure;
}

static bool is_ip_literal(const char *name) {
  uint8_t ignored[16];
  return inet_pton(AF_INET, name, ignored) == 1 || inet_pton(AF_INET6, name, ignored) == 1;
}

/* SNI, and the name that the certificate must have. */
static bool set_server_name(struct tls_session *session, const char *name) {
  bool literal = is_ip_literal(name);
  if (!literal && SSL_set_tlsext_host_name(session->ssl, name) != 1) return false;
  if (!session->context->verify) return true;
  if (literal) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl), name) == 1;
  SSL_set_hostflags(session->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(session->ssl, name) == 1;
}

static bool prepare_session(struct tls_session *session, const char *server_name) {
  session->ssl = SSL_new(session->context->ssl);
  BIO *bio = session->ssl ? BIO_new(session->context->transport) : NULL;
  if (!bio) return false;
  BIO_set_data(bio, session);
  BIO_set_init(bio, 1);
  SSL_set_bio(session->ssl, bio, bio);
  if (!session->context->client) {
    SSL_set_accept_state(session->ssl);
    return true;
  }
  SSL_set_connect_state(session->ssl);
  return set_server_name(session, server_name);
}

enum status tls_session_create(
    struct tls_session **out, struct tls_context *context, int fd, const char *server_name, struct err *err) {
  if (context->client && !server_name) {
    return err_set(err, STATUS_USAGE, "a TLS connection needs the server's name");
  }
  struct tls_session *session = calloc(1, sizeof *session);
  if (!session) return err_set(err, STATUS_MEMORY, "out of memory for a TLS session");
  session->context = context;
  session->fd = fd;
  if (!prepare_session(session, server_name)) {
    tls_session_free(session, false);
    return err_set(err, STATUS_MEMORY, "cannot make a TLS session: %s", openssl_reason());
  }
  *out = session;
  return STATUS_OK;
}

void tls_session_free(struct tls_session *session, bool notify) {
  if (notify && session->established && !session->broken) SSL_shutdown(session->ssl);
  ERR_clear_error();
  SSL_free(session->ssl);
  buf_free(&session->kept);
  free(session);
}

void tls_feed(struct tls_session *session, const uint8_t *data, size_t len) {
  session->fed = data;
  session->fed_len = len;
}

bool tls_keep(struct tls_session *session) {
  struct buf old = session->kept;
  session->kept = (struct buf){0};
  bool good = session->fed_len == 0 || buf_append(&session->kept, session->fed, session->fed_len);
  buf_free(&old);
  session->fed = session->kept.data;
  return good;
}

bool tls_unfinished(const struct tls_session *session) {
  return session->fed_len || session->wants_write;
}

static void note_failure(struct tls_session *session) {
  struct tls_context *context = session->context;
  long verdict = SSL_get_verify_result(session->ssl);
  const char *reason = openssl_reason();
  if (context->verify && verdict != X509_V_OK) {
    snprintf(context->failure, sizeof context->failure, "%s: %s", reason, X509_verify_cert_error_string(verdict));
    return;
  }
  snprintf(context->failure, sizeof context->failure, "%s", reason);
}

static enum tls_result classify(struct tls_session *session, int result, int *error) {
  switch (SSL_get_error(session->ssl, result)) {
  case SSL_ERROR_WANT_READ:
    return TLS_WANT_READ;
  case SSL_ERROR_WANT_WRITE:
    return TLS_WANT_WRITE;
  case SSL_ERROR_ZERO_RETURN:
    return TLS_CLOSED;
  case SSL_ERROR_SYSCALL:
    session->broken = true;
    *error = session->error;
    ERR_clear_error();
    return TLS_BROKEN;
  default:
    session->broken = true;
    note_failure(session);
    return TLS_FAILED;
  }
}

enum tls_result tls_handshake(struct tls_session *session, int *error) {
  ERR_clear_error();
  int done = SSL_do_handshake(session->ssl);
  session->wants_write = false;
  if (done == 1) {
    session->established = true;
    snprintf(session->context->facts, sizeof session->context->facts, "%s %s", SSL_get_version(session->ssl),
        SSL_get_cipher_name(session->ssl));
    return TLS_DONE;
  }
  enum tls_result result = classify(session, done, error);
  session->wants_write = result == TLS_WANT_WRITE;
  return result;
}

enum tls_result tls_read(struct tls_session *session, uint8_t *data, size_t room, size_t *got, int *error) {
  ERR_clear_error();
  *got = 0;
  int done = SSL_read_ex(session->ssl, data, room, got);
  session->wants_write = false;
  if (done == 1) return TLS_DONE;
  enum tls_result result = classify(session, done, error);
  session->wants_write = result == TLS_WANT_WRITE;
  return result;
}

enum tls_result tls_write(struct tls_session *session, const uint8_t *data, size_t len, size_t *sent, int *error) {
  ERR_clear_error();
  *sent = 0;
  int done = SSL_write_ex(session->ssl, data, len, sent);
  return done == 1 ? TLS_DONE : classify(session, done, error);
}
