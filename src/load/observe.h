/* The observer: looks about once a second, from the control process, at what a run uses and at what the user asked for
 * (docs/observe.md): the embedded server, the workers, the control process, and every target of `--observe`. It never
 * waits: files of the kernel are read, pages are fetched in the background. */
#ifndef MUSTER_LOAD_OBSERVE_H
#define MUSTER_LOAD_OBSERVE_H

#include "load/observe_spec.h"
#include "report/document.h"

#define OBSERVE_ROWS_MAX 90000 /* of one source: more than a day */

struct observer;

/* What is observed without being asked for. */
struct observe_own {
  pid_t server; /* the embedded one; 0: none */
  const pid_t *worker;
  uint32_t workers;
};

/* Looks at every target once, for which the caller waits, and leaves nothing open: one line for the first that is not
 * there. NULL is an empty list. */
enum status observer_check(const struct observe_list *list, struct err *err);

/* Opens everything and takes the first samples. The list must outlive the observer. What has gone since the check is
 * a gap with its reason. */
enum status observer_start(
    struct observer **out, const struct observe_list *list, const struct observe_own *own, struct err *err);

/* From now on samples fall on whole seconds from there, as the rows of the series do. */
void observer_align(struct observer *observer, uint64_t measure_ns);

/* To be called often: takes the samples that are due. */
void observer_turn(struct observer *observer, uint64_t now_ns);

/* Takes last samples; turns do nothing afterwards. */
void observer_stop(struct observer *observer, uint64_t now_ns);

/* Hands all rows to the report, and frees the observer. Harmless on NULL. */
void observer_finish(struct observer *observer, struct report *report);

#endif
