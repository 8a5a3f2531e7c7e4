/* Descriptor tables: the limit on open files (RLIMIT_NOFILE) counts for each table, and a thread may have one of its
 * own. So where one table is too small each gateway thread takes one, and the server holds as many connections as its
 * gateways have room for. Numbers of a table mean nothing to the other threads, but for those that it inherited. */
#ifndef MUSTER_SERVER_DESCRIPTORS_H
#define MUSTER_SERVER_DESCRIPTORS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define DESCRIPTORS_KEEP_MAX 8

/* Gives the calling thread a table of its own that inherits the standard streams and the descriptors in keep (count of
 * them, at most DESCRIPTORS_KEEP_MAX) and nothing else: a copy of a listener or a socket that outlives its owner's
 * would keep it open. What the thread opens from then on is closed with it. */
enum status descriptors_own(const int *keep, size_t count, struct err *err);

/* Descriptors that one table may hold. */
uint32_t descriptors_limit(void);

/* Connections that one gateway accepts: a table's descriptors but for a few. */
uint32_t descriptors_connections(uint32_t limit);

/* How many of them may be expected in a table that everything in the process shares. */
uint32_t descriptors_shared(uint32_t connections);

/* Gateways that hold so many connections when the kernel deals them out at random: five standard deviations of a
 * gateway's share fit. */
uint32_t descriptors_gateways(uint32_t connections, uint32_t limit);

#endif
