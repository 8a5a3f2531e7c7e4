/* Facts: a few short texts with names, in order. What a driver tells a report of its settings. */
#ifndef MUSTER_BASE_FACTS_H
#define MUSTER_BASE_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FACTS_MAX 12
#define FACT_NAME_MAX 24
#define FACT_VALUE_MAX 128

struct fact {
  char name[FACT_NAME_MAX], value[FACT_VALUE_MAX];
};

struct facts {
  struct fact fact[FACTS_MAX];
  uint32_t count;
};

/* Names are few and known; one too many, or a text too long, is cut off. */
static inline void facts_add(struct facts *facts, const char *name, const char *value) {
  if (facts->count == FACTS_MAX) return;
  struct fact *fact = &facts->fact[facts->count++];
  snprintf(fact->name, sizeof fact->name, "%s", name);
  snprintf(fact->value, sizeof fact->value, "%s", value);
}

static inline void facts_add_number(struct facts *facts, const char *name, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  facts_add(facts, name, text);
}

#endif
