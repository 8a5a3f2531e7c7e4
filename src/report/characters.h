/* UTF-8 in texts that came from elsewhere, and such texts in HTML and XML. */
#ifndef MUSTER_REPORT_CHARACTERS_H
#define MUSTER_REPORT_CHARACTERS_H

#include <stddef.h>
#include <stdio.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, written for bytes that are no UTF-8 */

/* The length of the sequence at text, or 0 when it is none (overlong forms and surrogates included). */
size_t utf8_length(const char *text);

/* A text as content or as an attribute's value: no markup can begin in it, and what XML has no characters for is
 * replaced. */
void markup_write(FILE *file, const char *text);

#endif
