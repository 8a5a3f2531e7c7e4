#include "driver/query.h"

#include "base/view.h"

/* The number of word in a list, or -1. */
static int position(const char *list, struct view word) {
  for (int i = 0; *list; i++) {
    size_t len = strcspn(list, "|");
    if (view_equal(view_of(list, len), word)) return i;
    list += len + (list[len] == '|');
  }
  return -1;
}

static int digit_of(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Resolves %XX; false when that is malformed, a control character, or too long. */
static bool read_text(struct view value, char out[QUERY_TEXT_MAX]) {
  size_t len = 0;
  for (size_t i = 0; i < value.len; i++) {
    int c = value.data[i];
    if (c == '%') {
      if (i + 2 >= value.len) return false;
      int high = digit_of(value.data[i + 1]), low = digit_of(value.data[i + 2]);
      if (high < 0 || low < 0) return false;
      c = high * 16 + low;
      i += 2;
    }
    if (c < ' ' || c == 0x7f || len + 1 >= QUERY_TEXT_MAX) return false;
    out[len++] = (char)c;
  }
  out[len] = '\0';
  return true;
}

static enum status read_choice(
    const struct query_choice *choice, struct view value, unsigned *chosen, struct err *err) {
  int number = position(choice->values, value);
  if (number >= 0) {
    *chosen = (unsigned)number;
    return STATUS_OK;
  }
  return err_set(err, STATUS_USAGE, "--target: %s=%.*s: give one of %s, once", choice->name, (int)value.len,
      (const char *)value.data, choice->values);
}

static enum status read_pair(struct view name, struct view value, const struct query_choice *choices, unsigned *chosen,
    char (*texts)[QUERY_TEXT_MAX], unsigned *seen, struct err *err) {
  for (unsigned i = 0; choices[i].name; i++) {
    if (!view_is(name, choices[i].name)) continue;
    if (*seen >> i & 1) return err_set(err, STATUS_USAGE, "--target: give %s once", choices[i].name);
    *seen |= 1U << i;
    if (choices[i].values) return read_choice(&choices[i], value, &chosen[i], err);
    chosen[i] = 1;
    if (texts && read_text(value, texts[i])) return STATUS_OK;
    return err_set(err, STATUS_USAGE, "--target: %s=%.*s: at most %d plain characters, others as %%XX", choices[i].name,
        (int)(value.len < 60 ? value.len : 60), (const char *)value.data, QUERY_TEXT_MAX - 1);
  }
  return err_set(err, STATUS_USAGE, "--target: this protocol has no setting '%.*s': its URL may say %s=%s",
      (int)(name.len < 40 ? name.len : 40), (const char *)name.data, choices[0].name,
      choices[0].values ? choices[0].values : "TEXT");
}

enum status query_read_texts(const char *query, const struct query_choice *choices, unsigned *chosen,
    char (*texts)[QUERY_TEXT_MAX], struct err *err) {
  unsigned seen = 0;
  for (unsigned i = 0; choices[i].name; i++)
    chosen[i] = 0;
  while (*query) {
    size_t len = strcspn(query, "&"), name_len = strcspn(query, "=&");
    size_t value_at = name_len < len ? name_len + 1 : len;
    enum status status = read_pair(
        view_of(query, name_len), view_of(query + value_at, len - value_at), choices, chosen, texts, &seen, err);
    if (status != STATUS_OK) return status;
    query += len + (query[len] == '&');
  }
  return STATUS_OK;
}

enum status query_read(const struct url *url, const struct query_choice *choices, unsigned *chosen,
    char (*texts)[QUERY_TEXT_MAX], struct err *err) {
  const char *at = url->path;
  if (*at == '/') at++;
  if (*at && *at != '?') {
    return err_set(err, STATUS_USAGE, "--target: this protocol has no paths, only settings as /?%s=%s", choices[0].name,
        choices[0].values);
  }
  return query_read_texts(*at ? at + 1 : at, choices, chosen, texts, err);
}

static struct view word_at(const char *list, unsigned number) {
  for (; number > 0; number--)
    list += strcspn(list, "|") + 1;
  return view_of(list, strcspn(list, "|"));
}

void query_tell(const struct query_choice *choices, const unsigned *chosen, char (*texts)[QUERY_TEXT_MAX], size_t count,
    struct facts *out) {
  for (size_t i = 0; i < count; i++) {
    char word[FACT_VALUE_MAX];
    struct view value = choices[i].values ? word_at(choices[i].values, chosen[i]) : view_str(texts[i]);
    snprintf(word, sizeof word, "%.*s", (int)value.len, (const char *)value.data);
    facts_add(out, choices[i].name, word);
  }
}

bool query_number(const char *text, uint32_t max, uint32_t *out) {
  uint64_t value = 0;
  size_t len = strspn(text, "0123456789");
  if (len == 0 || len > 10 || text[len] != '\0') return false;
  for (size_t i = 0; i < len; i++)
    value = value * 10 + (uint64_t)(text[i] - '0');
  *out = (uint32_t)value;
  return value >= 1 && value <= max;
}

bool query_split(const struct url *url, char *path, size_t size, const char **query) {
  size_t len = strcspn(url->path, "?");
  *query = url->path[len] ? url->path + len + 1 : "";
  if (len >= size) return false;
  memcpy(path, url->path, len);
  path[len] = '\0';
  return true;
}
