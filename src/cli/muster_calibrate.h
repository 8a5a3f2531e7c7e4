/* `muster calibrate`: the generator's own ceiling on this machine. */
#ifndef MUSTER_CLI_MUSTER_CALIBRATE_H
#define MUSTER_CLI_MUSTER_CALIBRATE_H

#include "report/document.h"

/* argv holds what follows `calibrate`. */
int command_calibrate(int argc, char **argv);

/* Notes in a report what was calibrated for its load on this machine; a missing or damaged file changes nothing. */
void note_calibration(struct report *report);

#endif
