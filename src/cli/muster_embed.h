/* The embedded musterd: a child process with a temporary store and a secret that only the two processes know. It ends
 * with its parent, however that ends, and takes its store with it. */
#ifndef MUSTER_CLI_MUSTER_EMBED_H
#define MUSTER_CLI_MUSTER_EMBED_H

#include "base/err.h"
#include "report/workload.h"

#include <stdint.h>
#include <sys/types.h>

struct embedded {
  pid_t pid;
  int control_fd; /* a byte, or its end, asks the child to stop */
  int status_fd;  /* the child's messages */
  uint32_t push_window;
  char data_dir[256];
  char app_key[32], secret[20];
  char ws_url[128], api_url[64];
};

/* Starts a server on free loopback ports as the workload's server options ask. Must be called before any thread
 * runs. */
enum status embedded_start(struct embedded *out, const struct workload *workload, struct err *err);

/* Stops it and removes its store. The error tells what went wrong with the server since its start. */
enum status embedded_stop(struct embedded *embedded, struct err *err);

#endif
