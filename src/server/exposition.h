/* What musterd counts, as a page for Prometheus and its kin (GET /metrics of the API port): OpenMetrics 1.0, or the
 * older text format 0.0.4 for who asks for that. */
#ifndef MUSTER_SERVER_EXPOSITION_H
#define MUSTER_SERVER_EXPOSITION_H

#include "server/metrics.h"

enum exposition { EXPOSITION_OPENMETRICS, EXPOSITION_TEXT };

const char *exposition_content_type(enum exposition format);

/* The page, to be freed; NULL when memory is out. */
char *exposition_page(const struct metrics_source *source, enum exposition format);

#endif
