#include "cli/muster_progress.h"

#include "report/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_S 1.0        /* between two lines in a pipe, while there is traffic */
#define QUIET_LINE_S 10.0 /* before it */
#define BAR_COLUMNS 24
#define NARROW_COLUMNS 70

struct progress progress_open(void) {
  const char *term = getenv("TERM");
  bool can_move = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
  return (struct progress){.file = stderr, .is_terminal = can_move};
}

static size_t terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

__attribute__((format(printf, 3, 4))) static void add(char *out, size_t size, const char *format, ...) {
  size_t used = strlen(out);
  va_list args;
  va_start(args, format);
  vsnprintf(out + used, size - used, format, args);
  va_end(args);
}

static void add_time(char *out, size_t size, const struct run_progress *p) {
  if (p->phase_length_s > 0) {
    add(out, size, "%.0f/%.0f s", p->phase_elapsed_s, p->phase_length_s);
  } else {
    add(out, size, "%.0f s", p->phase_elapsed_s);
  }
}

static void add_latency(char *out, size_t size, const char *name, int64_t p50_ns, int64_t p99_ns) {
  if (p50_ns > 0) add(out, size, "  %s p50 %.2f ms, p99 %.2f ms", name, (double)p50_ns / 1e6, (double)p99_ns / 1e6);
}

void progress_line(char *out, size_t size, const struct live *live) {
  const struct run_progress *p = &live->now;
  out[0] = '\0';
  add(out, size, "%s ", run_phase_name(p->phase));
  add_time(out, size, p);
  add(out, size, "  %" PRIu64 "/%" PRIu64 " connected", p->established, p->clients);
  if (p->failed) add(out, size, ", %" PRIu64 " failed", p->failed);
  if (p->dropped) add(out, size, ", %" PRIu64 " dropped", p->dropped);
  if (!live_has_traffic(p->phase)) return;
  add(out, size, "  scheduled %.0f/s", live->scheduled_per_sec);
  if (p->has_acks) add(out, size, ", acked %.0f/s", live->acked_per_sec);
  add(out, size, ", delivered %.0f/s, awaited %" PRIu64, live->delivered_per_sec, live_awaited(p));
  if (p->rejected) add(out, size, ", rejected %" PRIu64, p->rejected);
  if (p->timed_out) add(out, size, ", timed out %" PRIu64, p->timed_out);
  add_latency(out, size, "ack", p->ack_p50_ns, p->ack_p99_ns);
  add_latency(out, size, "delivery", p->delivery_p50_ns, p->delivery_p99_ns);
  add(out, size, "  busy %.0f %%", p->worst_busy_share * 100);
}

static void add_bar(char *out, size_t size, double share) {
  char bar[BAR_COLUMNS + 1];
  size_t full = (size_t)(share * BAR_COLUMNS);
  for (size_t i = 0; i < BAR_COLUMNS; i++)
    bar[i] = i < full ? '#' : '.';
  bar[BAR_COLUMNS] = '\0';
  add(out, size, "[%s]", bar);
}

static void head_row(char *out, size_t size, size_t columns, const struct live *live) {
  const struct run_progress *p = &live->now;
  add(out, size, "%-9s ", run_phase_name(p->phase));
  add_bar(out, size, live_share(p));
  add(out, size, " ");
  add_time(out, size, p);
  if (columns >= NARROW_COLUMNS) add(out, size, "  %s on %s", live->workload, live->target);
}

static void connections_row(char *out, size_t size, const struct live *live) {
  const struct run_progress *p = &live->now;
  char established[32], clients[32];
  format_count(established, p->established);
  format_count(clients, p->clients);
  add(out, size, "connections  %s of %s established", established, clients);
  if (p->phase == RUN_CONNECT) add(out, size, ", %.0f/s", live->established_per_sec);
  add(out, size, "   failed %" PRIu64 "   dropped %" PRIu64, p->failed, p->dropped);
}

static void publishes_row(char *out, size_t size, const struct live *live) {
  const struct run_progress *p = &live->now;
  add(out, size, "publishes    scheduled %.0f/s", live->scheduled_per_sec);
  if (p->has_acks) add(out, size, "   acked %.0f/s", live->acked_per_sec);
  add(out, size, "   rejected %" PRIu64 "   timed out %" PRIu64, p->rejected, p->timed_out);
}

static void latency_row(char *out, size_t size, const struct live *live) {
  const struct run_progress *p = &live->now;
  add(out, size, "latency    ");
  add_latency(out, size, "ack", p->ack_p50_ns, p->ack_p99_ns);
  add_latency(out, size, "delivery", p->delivery_p50_ns, p->delivery_p99_ns);
}

uint32_t progress_rows(char out[PROGRESS_ROWS_MAX][PROGRESS_COLUMNS_MAX], size_t columns, const struct live *live) {
  const struct run_progress *p = &live->now;
  size_t size = columns < PROGRESS_COLUMNS_MAX ? columns + 1 : PROGRESS_COLUMNS_MAX;
  uint32_t rows = 0;
  for (uint32_t i = 0; i < PROGRESS_ROWS_MAX; i++)
    out[i][0] = '\0';
  head_row(out[rows++], size, columns, live);
  connections_row(out[rows++], size, live);
  if (!live_has_traffic(p->phase)) return rows;
  publishes_row(out[rows++], size, live);
  add(out[rows++], size, "deliveries   observed %.0f/s   awaited %" PRIu64, live->delivered_per_sec, live_awaited(p));
  if (p->ack_p50_ns > 0 || p->delivery_p50_ns > 0) latency_row(out[rows++], size, live);
  add(out[rows++], size, "generator    worst core %.0f %% busy", p->worst_busy_share * 100);
  return rows;
}

void progress_clear(struct progress *progress) {
  if (progress->rows > 0) fprintf(progress->file, "\033[%uA\r\033[J", progress->rows);
  progress->rows = 0;
}

static void show_view(struct progress *progress, const struct live *live) {
  char rows[PROGRESS_ROWS_MAX][PROGRESS_COLUMNS_MAX];
  uint32_t count = progress_rows(rows, terminal_columns() - 1, live);
  progress_clear(progress);
  for (uint32_t i = 0; i < count; i++)
    fprintf(progress->file, "%s\n", rows[i]);
  progress->rows = count;
  fflush(progress->file);
}

void progress_show(struct progress *progress, const struct live *live, double at_s) {
  if (progress->is_terminal) {
    show_view(progress, live);
    return;
  }
  double pause_s = live_has_traffic(live->now.phase) ? LINE_S : QUIET_LINE_S;
  if (progress->line_s == 0) progress->line_s = at_s;
  if (at_s - progress->line_s < pause_s) return;
  char line[512];
  progress->line_s = at_s;
  progress_line(line, sizeof line, live);
  fprintf(progress->file, "%s\n", line);
}
