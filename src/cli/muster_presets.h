/* The scenarios that muster brings along (the YAML files of scenarios/), compiled in. */
#ifndef MUSTER_CLI_MUSTER_PRESETS_H
#define MUSTER_CLI_MUSTER_PRESETS_H

#include <stddef.h>

struct preset {
  const char *name; /* NULL behind the last */
  const unsigned char *text;
  size_t len;
};

/* In alphabetical order. */
extern const struct preset presets[];

#endif
