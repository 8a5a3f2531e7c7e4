/* Calibrations: the generator's own ceiling against a null peer, kept in a small file for later reports of the same
 * load on the same machine. */
#ifndef MUSTER_LOAD_CALIBRATE_H
#define MUSTER_LOAD_CALIBRATE_H

#include "base/err.h"
#include "report/document.h"

#include <stdint.h>

#define CALIBRATIONS_MAX 256 /* kept in a file; the oldest go first */
#define CALIBRATION_SHAPE_MAX 768

struct calibration {
  char hostname[128], cpu_model[128], kernel[128];
  uint32_t usable_cpus;
  char protocol[64];
  char shape[CALIBRATION_SHAPE_MAX]; /* all of the workload that the generator's cost hangs on, but for the rate */
  double ceiling_per_sec;            /* highest rate at which the generator stayed valid */
  double broken_per_sec;             /* lowest at which it did not; 0: none did, the ceiling is a lower bound */
  char measured_at[40];
};

struct calibrations {
  struct calibration entry[CALIBRATIONS_MAX];
  uint32_t count;
};

/* Machine, protocol and shape of a run, from its report; the rest is zero. */
void calibration_of_report(const struct report *report, struct calibration *out);

/* Reads a file; one that is not there holds none. STATUS_IO or STATUS_PROTOCOL when it cannot be read or is damaged. */
enum status calibrations_read(const char *path, struct calibrations *out, struct err *err);

/* Adds one, in the place of an earlier one of the same machine, protocol and shape; the file is replaced as a whole,
 * its folders are made. A damaged file is not overwritten. */
enum status calibration_store(const char *path, const struct calibration *calibration, struct err *err);

/* Fills report->calibration when the file has one for this machine, protocol and shape. */
void calibration_note(const struct calibrations *calibrations, struct report *report);

#endif
