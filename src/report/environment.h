/* Facts of the machine, read below a root folder so that a test can make up a machine. */
#ifndef MUSTER_REPORT_ENVIRONMENT_H
#define MUSTER_REPORT_ENVIRONMENT_H

#include "report/document.h"

/* Fills what files tell: CPU model, memory, OS name, congestion control, cgroup v2 limits. root: "" is the machine. */
void environment_read_files(const char *root, struct report_environment *out);

#endif
