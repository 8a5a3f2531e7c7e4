/* What the commands that run or write something share: the driver of the target, interrupts, where documents go, and
 * one judged run against the target or an embedded server. */
#ifndef MUSTER_CLI_MUSTER_SESSION_H
#define MUSTER_CLI_MUSTER_SESSION_H

#include "cli/muster_embed.h"
#include "cli/muster_options.h"
#include "cli/muster_web.h"
#include "driver/driver.h"
#include "load/run.h"
#include "report/document.h"
#include "report/index.h"
#include "report/slo.h"

#include <limits.h>
#include <stdio.h>

typedef enum status session_writer(FILE *file, const void *content, struct err *err);

struct session {
  const struct driver *driver;
  const struct slo_list *objectives;  /* NULL: none */
  const struct observe_list *observe; /* NULL: what is observed anyway */
  const struct embedded *kept_server; /* without a target: use this one instead of a fresh one; NULL: a fresh one */
  const char *secret;                 /* of the target; NULL: from the environment */
  const struct run_seconds *seconds;  /* who is told of each second; NULL: nobody */
  bool quiet;                         /* no progress */
  struct web *web;                    /* shows the run to others as well; NULL: nobody */
  bool is_one_of_many;                /* a step of a search, which tells of itself: progress on terminals only */
};

/* The first signal ends the phase of a run, the second everything. */
void session_catch_signals(void);
int session_interrupts(void);

/* The driver that was asked for, or that the target's scheme chooses. Refuses options that it does not read, takes the
 * app key from the environment when it has one and none was given, and tells the workload what its settings come to. */
enum status session_driver(struct run_arguments *arguments, const struct driver **out, struct err *err);

/* Opens what --ui or --metrics ask for and says where; *out is NULL when they ask for nothing. */
enum status session_open_web(const struct run_arguments *arguments, struct web **out, struct err *err);

/* Ends it: with the page of the document, or, when content is NULL, with why there is none. */
void session_close_web(
    struct web *web, const char *title, session_writer *write, const void *content, const struct err *why);

/* Carries out one run on a fresh population and judges it, objectives included. The report is the caller's. */
enum status session_run(
    const struct session *session, const struct workload *workload, struct report *report, struct err *err);

/* Where the JSON document goes: to standard output, or to a file or folder (NULL: nowhere). */
bool session_prints_json(const struct run_arguments *arguments);
const char *session_place(const struct run_arguments *arguments);
/* It is one, or ends in a slash and will be. */
bool session_is_folder(const char *path);
/* The folder of trials, with its slash: one that is there, or will be made. */
enum status session_folder(char out[PATH_MAX], const char *place, struct err *err);
/* Finds before the run that a file cannot be written. */
enum status session_check_files(const struct run_arguments *arguments, struct err *err);
enum status session_check_new_file(const char *option, const char *path, struct err *err); /* path NULL: no file */

struct session_document {
  const char *started_at, *id, *name;
};
/* The file name of a document: place itself, or <time>-<id>-<name>.json in it when it is a folder. */
void session_path(char out[PATH_MAX], const char *place, const struct session_document *document);
void session_now(char out[40]); /* RFC 3339, UTC */

/* What the index of a results folder says of a run. */
struct index_entry session_index_entry(const struct report *report);

#endif
