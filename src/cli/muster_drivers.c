#include "cli/muster_drivers.h"

#include "cli/muster_say.h"
#include "cli/muster_words.h"
#include "driver/driver.h"
#include "report/json_parts.h"
#include "report/layout.h"

#include <string.h>

#define NAME_COLUMNS 20

static const struct {
  unsigned bit;
  const char *name, *head; /* head: of the table, NULL: the name */
} columns[] = {
    {CAPABILITY_ACKS, "acks", NULL},
    {CAPABILITY_PRIVATE, "private", NULL},
    {CAPABILITY_GROUP, "group", NULL},
    {CAPABILITY_ROOM, "room", NULL},
    {CAPABILITY_BROADCAST, "broadcast", NULL},
    {CAPABILITY_ECHO, "echo", NULL},
    {CAPABILITY_OPERATIONS, "operations", "ops"},
    {CAPABILITY_GROUP_ECHO, "group-echo", NULL},
    {CAPABILITY_BACKLOG, "backlog", NULL},
    {CAPABILITY_QUEUE, "queue", NULL},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static const char *head_of(size_t column) {
  return columns[column].head ? columns[column].head : columns[column].name;
}

static void print_table(void) {
  printf("%-*s", NAME_COLUMNS, "driver");
  for (size_t i = 0; i < COLUMNS; i++)
    printf(" %s", head_of(i));
  putchar('\n');
  for (const struct driver *const *driver = driver_all(); *driver; driver++) {
    printf("%-*s", NAME_COLUMNS, (*driver)->name);
    for (size_t i = 0; i < COLUMNS; i++)
      printf(" %*s", (int)strlen(head_of(i)), (*driver)->capabilities & columns[i].bit ? "yes" : "-");
    putchar('\n');
  }
}

/* Several in a row share their schemes, which then stand behind the last. */
static void print_options(const struct driver *driver) {
  char text[640] = "none";
  size_t used = 0;
  for (const struct driver_option *at = driver->options; at && at->name; at++) {
    bool some = at->schemes && (!at[1].schemes || strcmp(at[1].schemes, at->schemes) != 0);
    int written = snprintf(text + used, sizeof text - used, "%s--%s%s%s%s", used ? ", " : "", at->name,
        some ? " (" : "", some ? at->schemes : "", some ? ")" : "");
    if (written > 0 && used + (size_t)written < sizeof text) used += (size_t)written;
  }
  page_text(stdout, "options", "%s", text);
}

static void print_driver(const struct driver *driver) {
  putchar('\n');
  page_text(stdout, "driver", "%s", driver->name);
  page_text(stdout, "protocol", "%s", driver->title);
  page_text(stdout, "schemes", "%s", driver->schemes);
  page_text(stdout, "ack", "%s", driver->ack_meaning);
  page_text(stdout, "delivery", "%s", driver->delivery);
  print_options(driver);
}

static void put_names(struct json_writer *w, const char *key, const char *list) {
  char name[64];
  json_open_flat_array(w, key);
  while (*list) {
    size_t len = strcspn(list, ",");
    snprintf(name, sizeof name, "%.*s", (int)len, list);
    json_put_text(w, NULL, name);
    list += len + (list[len] == ',');
  }
  json_close_array(w);
}

/* schemes: null where every URL will do. */
static void put_options(struct json_writer *w, const struct driver *driver) {
  json_open_array(w, "options");
  for (const struct driver_option *at = driver->options; at && at->name; at++) {
    json_open_object(w, NULL);
    json_put_text(w, "name", at->name);
    if (at->schemes) {
      put_names(w, "schemes", at->schemes);
    } else {
      json_put_null(w, "schemes");
    }
    json_close_object(w);
  }
  json_close_array(w);
}

static void put_driver(struct json_writer *w, const struct driver *driver) {
  json_open_object(w, NULL);
  json_put_text(w, "name", driver->name);
  json_put_text(w, "title", driver->title);
  put_names(w, "schemes", driver->schemes);
  json_open_object(w, "capabilities");
  for (size_t i = 0; i < COLUMNS; i++)
    json_put_bool(w, columns[i].name, driver->capabilities & columns[i].bit);
  json_close_object(w);
  put_options(w, driver);
  json_put_text(w, "ack_meaning", driver->ack_meaning);
  json_put_text(w, "delivery_semantics", driver->delivery);
  json_put_uint(w, "payload_min_bytes", driver->payload_min_bytes);
  json_close_object(w);
}

static void print_json(void) {
  struct json_writer writer = {.file = stdout};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_text(w, "document", "drivers");
  json_put_uint(w, "schema_version", 1);
  report_json_tool(w);
  json_open_array(w, "drivers");
  for (const struct driver *const *driver = driver_all(); *driver; driver++)
    put_driver(w, *driver);
  json_close_array(w);
  json_close_object(w);
}

static void print_page(void) {
  print_table();
  putchar('\n');
  page_text(stdout, "note",
      "the settings of a run may leave less of this, as its report says; group-echo: a group's message comes back to "
      "its sender, and is expected to; options: those that not every driver reads, with the schemes that they need");
  for (const struct driver *const *driver = driver_all(); *driver; driver++)
    print_driver(*driver);
}

int command_drivers(int argc, char **argv) {
  bool json = argc == 1 && strcmp(argv[0], "--json") == 0;
  bool help = argc == 1 && word_is_help(argv[0]);
  if (argc > 0 && !json && !help) {
    struct err err = {0};
    err_set(&err, STATUS_USAGE, "`muster drivers` takes no arguments but --json");
    return complain(&err);
  }
  if (help) {
    puts("Usage: muster drivers [--json]\n\n"
         "The protocols: what each can do, what its ACK means and what its deliveries promise.");
  } else if (json) {
    print_json();
  } else {
    print_page();
  }
  return finish_stdout(EXIT_VALID);
}
