/* What a report says beside its figures: the server as the driver found it, what limits the meaning of the figures, and
 * why nobody could connect. */
#ifndef MUSTER_LOAD_DESCRIBE_H
#define MUSTER_LOAD_DESCRIBE_H

#include "load/shared.h"
#include "report/document.h"

void describe_target(const struct plan *plan, const char *url, struct report *report);
void describe_limitations(const struct plan *plan, struct report *report);
/* A run with rejections may be valid: they are what the server said. But they must not go unread. */
void describe_rejections(struct report *report);
/* The server keeps something of the run, which may disturb the next one. */
void describe_left_behind(struct report *report);
/* STATUS_UNREACHABLE with one line: none of the clients came in; the most frequent cause says how to mend it. */
enum status describe_unreached(const struct plan *plan, const struct report *report, struct err *err);

#endif
