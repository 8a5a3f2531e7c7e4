#include "load/observe_scrape.h"

#include "base/buf.h"

#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>

struct scrape {
  const struct observe_target *target;
  CURLM *multi;
  CURL *easy;
  struct curl_slist *headers;
  char error[CURL_ERROR_SIZE];
  bool running;
  bool skipping; /* the rest of a line that is too long */
  bool ended;    /* "# EOF" came: what follows is no part of the page */
  struct buf line;
  size_t bytes;
  uint64_t samples;
  double value[OBSERVE_SERIES_MAX];
};

static void take_line(struct scrape *scrape, struct view line) {
  struct openmetrics_series series;
  double value;
  enum openmetrics_line kind = openmetrics_read(line, &series, &value);
  if (kind == OPENMETRICS_END) scrape->ended = true;
  if (scrape->ended || kind != OPENMETRICS_SAMPLE) return;
  scrape->samples++;
  for (uint32_t i = 0; i < scrape->target->series_count; i++) {
    if (!openmetrics_selects(&scrape->target->series[i], &series)) continue;
    scrape->value[i] = isnan(scrape->value[i]) ? value : scrape->value[i] + value;
  }
}

/* A line, or its end when the beginning came before. */
static bool end_line(struct scrape *scrape, struct view part) {
  if (scrape->skipping) {
    scrape->skipping = false;
    return true;
  }
  if (scrape->line.len == 0) {
    take_line(scrape, part);
    return true;
  }
  if (!buf_append(&scrape->line, part.data, part.len)) return false;
  take_line(scrape, view_of(scrape->line.data, scrape->line.len));
  scrape->line.len = 0;
  return true;
}

static bool keep_part(struct scrape *scrape, struct view part) {
  if (scrape->skipping) return true;
  if (scrape->line.len + part.len <= OPENMETRICS_LINE_MAX) return buf_append(&scrape->line, part.data, part.len);
  scrape->line.len = 0;
  scrape->skipping = true;
  return true;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
  struct scrape *scrape = context;
  size_t len = size * count;
  struct view rest = view_of(data, len);
  scrape->bytes += len;
  if (scrape->bytes > SCRAPE_BYTES_MAX) return 0; /* makes curl end the transfer */
  for (;;) {
    const uint8_t *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
    if (!end) return keep_part(scrape, rest) ? len : 0;
    size_t part = (size_t)(end - rest.data);
    if (!end_line(scrape, view_of(rest.data, part))) return 0;
    rest = view_of(end + 1, rest.len - part - 1);
  }
}

static void configure(struct scrape *scrape) {
  CURL *easy = scrape->easy;
  curl_easy_setopt(easy, CURLOPT_URL, scrape->target->where);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, scrape->headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, scrape);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, scrape->error);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)SCRAPE_TIMEOUT_MS);
}

enum status scrape_new(struct scrape **out, const struct observe_target *target, struct err *err) {
  struct scrape *scrape = calloc(1, sizeof *scrape);
  if (!scrape) return err_set(err, STATUS_MEMORY, "out of memory to observe a page");
  scrape->target = target;
  scrape->multi = curl_multi_init();
  scrape->easy = curl_easy_init();
  scrape->headers =
      curl_slist_append(NULL, "Accept: application/openmetrics-text; version=1.0.0, text/plain; version=0.0.4; q=0.5");
  if (!scrape->multi || !scrape->easy || !scrape->headers) {
    scrape_free(scrape);
    return err_set(err, STATUS_MEMORY, "out of memory to observe a page");
  }
  configure(scrape);
  *out = scrape;
  return STATUS_OK;
}

void scrape_free(struct scrape *scrape) {
  if (!scrape) return;
  if (scrape->running) curl_multi_remove_handle(scrape->multi, scrape->easy);
  if (scrape->easy) curl_easy_cleanup(scrape->easy);
  if (scrape->multi) curl_multi_cleanup(scrape->multi);
  curl_slist_free_all(scrape->headers);
  buf_free(&scrape->line);
  free(scrape);
}

bool scrape_begin(struct scrape *scrape) {
  if (scrape->running) return false;
  scrape->error[0] = '\0';
  scrape->line.len = 0;
  scrape->skipping = false;
  scrape->ended = false;
  scrape->bytes = 0;
  scrape->samples = 0;
  for (int i = 0; i < OBSERVE_SERIES_MAX; i++)
    scrape->value[i] = NAN;
  scrape->running = curl_multi_add_handle(scrape->multi, scrape->easy) == CURLM_OK;
  return scrape->running;
}

static enum status judge(struct scrape *scrape, CURLcode code, struct err *err) {
  long http_status = 0;
  curl_easy_getinfo(scrape->easy, CURLINFO_RESPONSE_CODE, &http_status);
  if (scrape->bytes > SCRAPE_BYTES_MAX) {
    return err_set(err, STATUS_UNREACHABLE, "the page is larger than %u MiB", SCRAPE_BYTES_MAX >> 20);
  }
  if (code != CURLE_OK) {
    return err_set(err, STATUS_UNREACHABLE, "%s", scrape->error[0] ? scrape->error : curl_easy_strerror(code));
  }
  if (http_status != 200) return err_set(err, STATUS_UNREACHABLE, "it answers HTTP %ld", http_status);
  if (scrape->line.len && !scrape->skipping) end_line(scrape, (struct view){0});
  if (scrape->samples == 0) return err_set(err, STATUS_UNREACHABLE, "its answer holds no metrics");
  return STATUS_OK;
}

bool scrape_turn(struct scrape *scrape, double value[OBSERVE_SERIES_MAX], enum status *status, struct err *err) {
  int running = 0, queued = 0;
  if (!scrape->running) return false;
  curl_multi_perform(scrape->multi, &running);
  const CURLMsg *message = curl_multi_info_read(scrape->multi, &queued);
  if (!message || message->msg != CURLMSG_DONE) return false;
  CURLcode code = message->data.result;
  *status = judge(scrape, code, err);
  curl_multi_remove_handle(scrape->multi, scrape->easy);
  scrape->running = false;
  memcpy(value, scrape->value, sizeof scrape->value);
  return true;
}

enum status scrape_once(struct scrape *scrape, double value[OBSERVE_SERIES_MAX], struct err *err) {
  enum status status = STATUS_OK;
  if (!scrape_begin(scrape)) return err_set(err, STATUS_IO, "the fetch cannot begin");
  while (!scrape_turn(scrape, value, &status, err))
    curl_multi_poll(scrape->multi, NULL, 0, 100, NULL);
  return status;
}
