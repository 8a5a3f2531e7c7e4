#include "cli/muster_report.h"

#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "cli/muster_words.h"
#include "load/find.h"
#include "report/compare.h"
#include "report/formats.h"
#include "report/html.h"
#include "report/read.h"
#include "report/save.h"
#include "report/trials.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status write_as_it_is(FILE *file, const struct document *document, struct err *err) {
  fwrite(document->text, 1, document->len, file);
  return save_flush(file, "report", err);
}

static enum status write_search(FILE *file, const struct document *document, struct err *err) {
  struct find *find = calloc(1, sizeof *find);
  if (!find) return err_set(err, STATUS_MEMORY, "out of memory for the search");
  enum status status = find_from_document(document, find, err);
  if (status == STATUS_OK) status = find_write_text(file, find, err);
  free(find);
  return status;
}

/* What the command printed that made the document. */
static enum status write_text(FILE *file, const struct document *document, struct err *err) {
  if (document->kind == DOCUMENT_TRIALS) return trials_rewrite_text(file, document, err);
  if (document->kind == DOCUMENT_COMPARE) return compare_rewrite_text(file, document, err);
  return write_search(file, document, err);
}

static enum status write_markdown(FILE *file, const struct document *document, struct err *err) {
  fprintf(file, "### muster %s\n\n~~~text\n", document_kind_name(document->kind));
  enum status status = write_text(file, document, err);
  fputs("~~~\n", file);
  return status == STATUS_OK ? save_flush(file, "report", err) : status;
}

static enum status write_page(FILE *file, const struct document *document, struct err *err) {
  char title[160];
  snprintf(title, sizeof title, "muster: %.120s", document->name);
  return html_write(file, title, document->text, err);
}

/* The forms: each of a run's report by report_formats, some of every other document too. */
static const struct renderer {
  const char *name, *extension, *help;
  bool joins; /* several of them one after the other make sense */
  enum status (*document)(FILE *file, const struct document *document, struct err *err); /* NULL: only runs */
} renderers[] = {
    {"text", "txt", "as the command printed it, of any document", true, write_text},
    {"json", "json", "of the current schema version; other documents as they are", false, write_as_it_is},
    {"csv", "csv", "a row a second", false, NULL},
    {"jsonl", "jsonl", "JSON lines: one a second, then the summary", true, NULL},
    {"hlog", "hlog", "HdrHistogram log of every clock", false, NULL},
    {"junit", "xml", "JUnit XML: verdict, objectives and accounting as tests", false, NULL},
    {"markdown", "md", "a summary for a pull request, of any document", true, write_markdown},
    {"html", "html", "one page for a browser, of any document", false, write_page},
};
#define RENDERERS (sizeof renderers / sizeof renderers[0])

static const struct word_option options_of_report[] = {
    {"as", "FORM", "one of these [by the ending of --output, else text]"},
    {"output", "PATH", "a new file, or a folder for several reports [standard output]"},
};
#define OPTIONS (sizeof options_of_report / sizeof options_of_report[0])
enum { OPTION_AS, OPTION_OUTPUT };

struct options {
  const char *as, *output;
  const struct renderer *renderer;
  char **file; /* the front of argv is used again for them */
  int files;
  bool help;
};

static void print_help(void) {
  puts("Usage: muster report FILE... [--as FORM] [--output PATH]\n\n"
       "Shows saved JSON documents again; '-' reads standard input. Searches, trials and comparisons have the forms\n"
       "text, json, markdown and html.\n\nForms:");
  for (size_t i = 0; i < RENDERERS; i++)
    printf("  %-10s %s\n", renderers[i].name, renderers[i].help);
  puts("\nOptions:");
  for (size_t i = 0; i < OPTIONS; i++)
    word_help(&options_of_report[i]);
  puts("\nExit codes: 0 shown (whatever the verdict is), 2 usage, or no report of muster, 3 not written.");
}

static enum status take_option(int argc, char **argv, int *at, struct options *out, struct err *err) {
  size_t index = 0;
  char *value;
  while (index < OPTIONS && !word_names(argv[*at], &options_of_report[index]))
    index++;
  if (index == OPTIONS) return word_unknown(argv[*at], options_of_report, OPTIONS, "report", err);
  enum status status = word_value(&options_of_report[index], argc, argv, at, &value, err);
  if (status != STATUS_OK) return status;
  *(index == OPTION_AS ? &out->as : &out->output) = value;
  return STATUS_OK;
}

static enum status parse(int argc, char **argv, struct options *out, struct err *err) {
  out->file = argv;
  enum status status = STATUS_OK;
  for (int i = 0; i < argc && status == STATUS_OK; i++) {
    if (word_is_help(argv[i])) {
      out->help = true;
    } else if (word_is_option(argv[i])) {
      status = take_option(argc, argv, &i, out, err);
    } else {
      out->file[out->files++] = argv[i];
    }
  }
  return status;
}

static const struct renderer *renderer_named(const char *name) {
  for (size_t i = 0; i < RENDERERS; i++) {
    if (strcmp(renderers[i].name, name) == 0) return &renderers[i];
  }
  return NULL;
}

/* NULL: no form has it. A folder's files get theirs. */
static const struct renderer *renderer_of_ending(const char *path) {
  if (!path || session_is_folder(path)) return &renderers[0];
  const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
  for (size_t i = 0; dot && i < RENDERERS; i++) {
    if (strcmp(renderers[i].extension, dot + 1) == 0) return &renderers[i];
  }
  return NULL;
}

static enum status choose_renderer(struct options *options, struct err *err) {
  if (!options->as) {
    options->renderer = renderer_of_ending(options->output);
    if (options->renderer) return STATUS_OK;
    return err_set(err, STATUS_USAGE,
        "--output %.200s: its ending names no form (.txt, .json, .csv, .jsonl, .hlog, .xml, .md or .html): give --as "
        "FORM",
        options->output);
  }
  options->renderer = renderer_named(options->as);
  if (options->renderer) return STATUS_OK;
  char list[160];
  size_t len = 0;
  for (size_t i = 0; i < RENDERERS; i++)
    len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? "|" : "", renderers[i].name);
  return err_set(err, STATUS_USAGE, "--as %.40s: give one of %s", options->as, list);
}

static enum status check(struct options *options, struct err *err) {
  if (options->files == 0) {
    return err_set(err, STATUS_USAGE, "name a JSON report: `muster report results/FILE.json --as html`");
  }
  enum status status = choose_renderer(options, err);
  if (status != STATUS_OK || options->files == 1) return status;
  bool to_folder = options->output && session_is_folder(options->output);
  if (options->output && !to_folder) {
    return err_set(err, STATUS_USAGE, "--output %.200s: several reports need a folder: write a / behind its name",
        options->output);
  }
  if (to_folder || options->renderer->joins) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "several reports do not make one %s: give --output FOLDER/", options->renderer->name);
}

struct rendering {
  const struct renderer *renderer;
  const struct document *document;
};

static enum status write_run(FILE *file, const struct rendering *rendering, struct err *err) {
  struct report report;
  enum status status = report_from_document(rendering->document, &report, err);
  if (status != STATUS_OK) return status;
  status = report_format_find(rendering->renderer->name)->write(file, &report, err);
  report_free(&report);
  return status;
}

static enum status render(FILE *file, const void *content, struct err *err) {
  const struct rendering *rendering = content;
  const struct document *document = rendering->document;
  if (document->kind == DOCUMENT_RUN) return write_run(file, rendering, err);
  if (rendering->renderer->document) return rendering->renderer->document(file, document, err);
  return err_set(err, STATUS_USAGE,
      "%.200s: is a %s, which has the forms text, json, markdown and html: give --as html", document->name,
      document_kind_name(document->kind));
}

/* "results/x.json" as html into "pages/" is "pages/x.html". */
static void output_path(char out[PATH_MAX], const struct options *options, const char *file) {
  if (!session_is_folder(options->output)) {
    snprintf(out, PATH_MAX, "%s", options->output);
    return;
  }
  const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
  if (strcmp(file, "-") == 0) base = "report";
  size_t len = strlen(base);
  if (len > 5 && strcmp(base + len - 5, ".json") == 0) len -= 5;
  snprintf(out, PATH_MAX, "%s%s%.*s.%s", options->output, save_slash(options->output), (int)len, base,
      options->renderer->extension);
}

static int show(const struct options *options, const char *file) {
  struct err err = {0};
  struct document document;
  enum status status = document_read(file, &document, &err);
  struct rendering rendering = {options->renderer, &document};
  char path[PATH_MAX];
  if (status == STATUS_OK && options->output) {
    output_path(path, options, file);
    status = session_check_new_file("--output", path, &err);
    if (status == STATUS_OK) status = save_new_file(path, render, &rendering, &err);
  } else if (status == STATUS_OK) {
    status = render(stdout, &rendering, &err);
  }
  document_free(&document);
  if (status != STATUS_OK) return complain(&err);
  if (options->output) fprintf(stderr, "%s: %s\n", options->renderer->name, path);
  return EXIT_VALID;
}

static int show_all(const struct options *options) {
  int code = EXIT_VALID;
  for (int i = 0; i < options->files; i++) {
    if (i && !options->output && strcmp(options->renderer->name, "jsonl") != 0) putchar('\n');
    int one = show(options, options->file[i]);
    if (one != EXIT_VALID) code = one;
  }
  return finish_stdout(code);
}

int command_report(int argc, char **argv) {
  struct err err = {0};
  struct options options = {0};
  if (parse(argc, argv, &options, &err) != STATUS_OK) return complain(&err);
  if (options.help) {
    print_help();
    return finish_stdout(EXIT_VALID);
  }
  return check(&options, &err) == STATUS_OK ? show_all(&options) : complain(&err);
}
