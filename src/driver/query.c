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

static enum status read_pair(struct view name, struct view value, const struct query_choice *choices, unsigned *chosen,
    unsigned *seen, struct err *err) {
  for (unsigned i = 0; choices[i].name; i++) {
    if (!view_is(name, choices[i].name)) continue;
    int number = position(choices[i].values, value);
    if (number < 0 || *seen >> i & 1) {
      return err_set(err, STATUS_USAGE, "--target: %s=%.*s: give one of %s, once", choices[i].name, (int)value.len,
          (const char *)value.data, choices[i].values);
    }
    *seen |= 1U << i;
    chosen[i] = (unsigned)number;
    return STATUS_OK;
  }
  return err_set(err, STATUS_USAGE, "--target: this protocol has no setting '%.*s': its URL may say %s=%s",
      (int)(name.len < 40 ? name.len : 40), (const char *)name.data, choices[0].name, choices[0].values);
}

enum status query_read(const struct url *url, const struct query_choice *choices, unsigned *chosen, struct err *err) {
  const char *at = url->path;
  unsigned seen = 0;
  for (unsigned i = 0; choices[i].name; i++)
    chosen[i] = 0;
  if (*at == '/') at++;
  if (*at && *at != '?') {
    return err_set(err, STATUS_USAGE, "--target: this protocol has no paths, only settings as /?%s=%s", choices[0].name,
        choices[0].values);
  }
  if (*at) at++;
  while (*at) {
    size_t len = strcspn(at, "&"), name_len = strcspn(at, "=&");
    size_t value_at = name_len < len ? name_len + 1 : len;
    enum status status =
        read_pair(view_of(at, name_len), view_of(at + value_at, len - value_at), choices, chosen, &seen, err);
    if (status != STATUS_OK) return status;
    at += len + (at[len] == '&');
  }
  return STATUS_OK;
}
