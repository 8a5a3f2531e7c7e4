#include "cli/muster_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static size_t terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

static void add_traffic(char *out, size_t size, const struct run_progress *p) {
  size_t used = strlen(out);
  used += (size_t)snprintf(out + used, size - used, "  scheduled %" PRIu64 " acked %" PRIu64 " delivered %" PRIu64,
      p->scheduled, p->acked, p->delivered);
  if (used >= size) return;
  if (p->rejected) used += (size_t)snprintf(out + used, size - used, " rejected %" PRIu64, p->rejected);
  if (used >= size || p->ack_p50_ns == 0) return;
  snprintf(out + used, size - used, "  ack p50 %.2f p99 %.2f ms  busy %.0f %%", (double)p->ack_p50_ns / 1e6,
      (double)p->ack_p99_ns / 1e6, p->worst_busy_share * 100);
}

void progress_line(char *out, size_t size, const struct run_progress *p) {
  char time[48];
  if (p->phase_length_s > 0) {
    snprintf(time, sizeof time, "%.0f/%.0f s", p->phase_elapsed_s, p->phase_length_s);
  } else {
    snprintf(time, sizeof time, "%.0f s", p->phase_elapsed_s);
  }
  snprintf(out, size, "%s %s  %" PRIu64 "/%" PRIu64 " connected", run_phase_name(p->phase), time, p->established,
      p->clients);
  size_t used = strlen(out);
  if (p->failed) snprintf(out + used, size - used, ", %" PRIu64 " failed", p->failed);
  bool has_traffic =
      p->phase == RUN_WARM_UP || p->phase == RUN_MEASURE || p->phase == RUN_GRACE || p->phase == RUN_CATCH_UP;
  if (has_traffic) add_traffic(out, size, p);
}

void progress_show(void *context, const struct run_progress *progress) {
  (void)context;
  char line[512];
  progress_line(line, sizeof line, progress);
  size_t width = terminal_columns() - 1;
  if (strlen(line) > width) line[width < sizeof line ? width : sizeof line - 1] = '\0';
  fprintf(stderr, "\r\033[K%s", line);
}

void progress_clear(void) {
  fputs("\r\033[K", stderr);
}
