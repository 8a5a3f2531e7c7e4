/* Options that are given and would have no effect, because the driver of the run does not read them. */
#ifndef MUSTER_CLI_MUSTER_UNREAD_H
#define MUSTER_CLI_MUSTER_UNREAD_H

#include "cli/muster_options.h"
#include "driver/driver.h"

/* STATUS_USAGE for the first one, with the file's line and column where a scenario gives it. */
enum status unread_check(const struct run_arguments *arguments, const struct driver *driver, struct err *err);

/* True when only some drivers read the option; list gets their names, separated by commas. */
#define DRIVERS_LIST_MAX 120
bool unread_by_some(const char *option, char list[DRIVERS_LIST_MAX]);

#endif
