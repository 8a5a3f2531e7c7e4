/* Settings of a target that stand in its URL: "nats://host:4222/?headers=on&replicas=3". */
#ifndef MUSTER_DRIVER_QUERY_H
#define MUSTER_DRIVER_QUERY_H

#include "base/err.h"
#include "base/facts.h"
#include "net/address.h"

#define QUERY_TEXT_MAX 128

struct query_choice {
  const char *name;
  const char *values; /* separated by '|', the first is the default; NULL: any text, where texts are asked for */
};

/* Checks that the path is nothing but a query of these settings, each at most once; STATUS_USAGE with one line.
 * choices ends with a name of NULL. chosen[i] becomes the number of the value. texts[i], which holds the default,
 * becomes the text of a setting with any, its %XX resolved; chosen[i] is then 1. Texts have no control characters.
 * texts may be NULL where there are none. */
enum status query_read(const struct url *url, const struct query_choice *choices, unsigned *chosen,
    char (*texts)[QUERY_TEXT_MAX], struct err *err);

/* The same for a query alone, the path before it being the driver's business; query: behind the '?', or "". */
enum status query_read_texts(const char *query, const struct query_choice *choices, unsigned *chosen,
    char (*texts)[QUERY_TEXT_MAX], struct err *err);

/* Tells the first count settings as they were read. */
void query_tell(const struct query_choice *choices, const unsigned *chosen, char (*texts)[QUERY_TEXT_MAX], size_t count,
    struct facts *out);

/* A text of digits alone, from 1 to max. */
bool query_number(const char *text, uint32_t max, uint32_t *out);

/* The query of a URL's path, "" when it has none; the path before it goes to path, if it fits; false when not. */
bool query_split(const struct url *url, char *path, size_t size, const char **query);

#endif
