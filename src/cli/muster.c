/* muster: a load generator for real-time messaging servers. This file finds the command. */
#include "build_facts.h"
#include "cli/muster_calibrate.h"
#include "cli/muster_compare.h"
#include "cli/muster_drivers.h"
#include "cli/muster_find.h"
#include "cli/muster_options.h"
#include "cli/muster_plan.h"
#include "cli/muster_report.h"
#include "cli/muster_ricochet.h"
#include "cli/muster_run.h"
#include "cli/muster_say.h"
#include "driver/driver.h"
#include "report/document.h"

#include <curl/curl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static int command_help(int argc, char **argv);

static int command_version(int argc, char **argv) {
  (void)argc;
  (void)argv;
  printf("muster %s (commit %s%s), report schema %d, %s\n", MUSTER_VERSION, MUSTER_COMMIT,
      MUSTER_DIRTY ? ", modified" : "", REPORT_SCHEMA_VERSION, "compiler " __VERSION__);
  printf("build      %s, for %s\n", MUSTER_BUILD, MUSTER_SYSTEM);
  printf("libraries  %s; %s; SQLite %s; libmicrohttpd %s; jansson %s; zlib %s\n", OpenSSL_version(OPENSSL_VERSION),
      curl_version(), sqlite3_libversion(), MHD_get_version(), jansson_version_str(), zlibVersion());
  fputs("drivers   ", stdout);
  for (const struct driver *const *driver = driver_all(); *driver; driver++)
    printf(" %s", (*driver)->name);
  putchar('\n');
  return finish_stdout(EXIT_VALID);
}

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
  bool takes_arguments;
} commands[] = {
    {"run", command_run, "run a workload and report: `muster run private`, `muster run group`", true},
    {"find", command_find, "search for the load that a server holds: `muster find private`", true},
    {"report", command_report, "show a saved report again: text, HTML, CSV, JUnit, Markdown and more", true},
    {"ricochet", command_ricochet, "a scenario of ricochet-bench, with its arguments", true},
    {"calibrate", command_calibrate, "measure the generator's own ceiling on this machine", true},
    {"compare", command_compare, "two sets of runs: faster, slower, or no difference shown", true},
    {"plan", command_plan, "what a run would do and ask of this machine, without doing it", true},
    {"scenarios", command_scenarios, "list the presets: tests of the field by name", false},
    {"drivers", command_drivers, "list the protocols, what they can do and what an ACK means", true},
    {"version", command_version, "version, commit and compiler of this build", false},
    {"help", command_help, "this text, or the help of a command: `muster help run`", true},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static int unknown_command(const char *name) {
  const char *names[COMMANDS];
  for (size_t i = 0; i < COMMANDS; i++)
    names[i] = commands[i].name;
  const char *near = nearest_word(name, names, COMMANDS);
  struct err err = {0};
  if (near) {
    err_set(&err, STATUS_USAGE, "unknown command '%.40s': did you mean %s?", name, near);
  } else if (strcmp(name, "private") == 0 || strcmp(name, "group") == 0) {
    err_set(&err, STATUS_USAGE, "unknown command '%s': did you mean `muster run %s`?", name, name);
  } else {
    err_set(&err, STATUS_USAGE, "unknown command '%.40s': `muster help` lists them", name);
  }
  return complain(&err);
}

static int help_run(const char *topic) {
  struct err err = {0};
  if (run_arguments_help(stdout, topic)) return finish_stdout(EXIT_VALID);
  char list[240] = "all";
  for (size_t i = 0; run_arguments_topic(i); i++) {
    size_t len = strlen(list);
    snprintf(list + len, sizeof list - len, ", %s", run_arguments_topic(i));
  }
  err_set(&err, STATUS_USAGE, "no group of options is called '%.40s': `muster help run` and one of %s", topic, list);
  return complain(&err);
}

static int command_help(int argc, char **argv) {
  bool found = argc == 0;
  for (size_t i = 0; i < COMMANDS && !found; i++) {
    found = strcmp(argv[0], commands[i].name) == 0;
    if (!found || !commands[i].takes_arguments || commands[i].run == command_help) continue;
    char help[] = "--help";
    return commands[i].run == command_run && argc > 1 ? help_run(argv[1]) : commands[i].run(1, (char *[]){help});
  }
  if (!found) return unknown_command(argv[0]);
  puts("muster: does your real-time messaging server pass muster?\n\nUsage: muster COMMAND [options]\n");
  for (size_t i = 0; i < COMMANDS; i++) {
    if (argc == 0 || strcmp(argv[0], commands[i].name) == 0) printf("  %-9s  %s\n", commands[i].name, commands[i].help);
  }
  puts("\nWithout --target a musterd is started on free ports and driven: `muster run private` just works.\n"
       "Exit codes: 0 valid, 1 an objective is broken, 2 usage, 3 invalid run, 4 target unreachable.");
  return finish_stdout(EXIT_VALID);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, which is reported */
  signal(SIGXFSZ, SIG_IGN); /* so is a limit on file sizes */
  struct err err = {0};
  if (argc < 2) {
    err_set(&err, STATUS_USAGE, "say what to do: `muster run private`, or `muster help`");
    return complain(&err);
  }
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-help") == 0)
    return command_help(0, NULL);
  if (strcmp(name, "--version") == 0 || strcmp(name, "-version") == 0 || strcmp(name, "-V") == 0)
    return command_version(0, NULL);
  for (size_t i = 0; i < COMMANDS; i++) {
    if (strcmp(name, commands[i].name) != 0) continue;
    if (argc > 2 && !commands[i].takes_arguments) {
      bool wants_help = strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0;
      if (wants_help) return command_help(1, argv + 1);
      err_set(&err, STATUS_USAGE, "`muster %s` takes no arguments: '%.40s' is too much", name, argv[2]);
      return complain(&err);
    }
    return commands[i].run(argc - 2, argv + 2);
  }
  return unknown_command(name);
}
