#include "report/workload.h"

const char *topology_name(enum topology_kind topology) {
  return topology == TOPOLOGY_RING ? "ring" : "group";
}

const char *arrivals_name(enum arrivals arrivals) {
  return arrivals == ARRIVALS_CONSTANT ? "constant" : "poisson";
}
