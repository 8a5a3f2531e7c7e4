/* The run as others may watch it while it goes on: a page for people (--ui) and OpenMetrics for machines (--metrics),
 * over HTTP from the control process, without a thread, since the run forks. The page follows the run through
 * Server-Sent Events and goes to the report at its end. */
#ifndef MUSTER_CLI_MUSTER_WEB_H
#define MUSTER_CLI_MUSTER_WEB_H

#include "base/err.h"
#include "cli/muster_live.h"

#include <stdbool.h>

struct web;

/* Listens on "[HOST:]PORT" (HOST defaults to 127.0.0.1); with_page: the page besides /metrics. option names who asks
 * ("--ui") in errors. */
enum status web_open(struct web **out, const char *option, const char *listen, bool with_page, struct err *err);
void web_close(struct web *web);
/* "http://127.0.0.1:8080/"; valid as long as web. */
const char *web_url(const struct web *web);

/* Readable when web_serve has something to do. */
int web_fd(const struct web *web);
/* Does what can be done now, without waiting. */
void web_serve(struct web *web);

/* Shows live from now on, and tells every page. */
void web_show(struct web *web, const struct live *live);

/* The run is over. html: its report, which every open page goes to, or NULL and why there is none. Serves for as long
 * as pages are fetching it, WEB_LINGER_S at most. */
#define WEB_LINGER_S 5
void web_finish(struct web *web, const char *html, size_t len, const char *why);

#endif
