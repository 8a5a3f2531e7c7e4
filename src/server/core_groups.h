/* Groups and the small helpers that they share with core_people.c. */
#ifndef MUSTER_SERVER_CORE_GROUPS_H
#define MUSTER_SERVER_CORE_GROUPS_H

#include "server/core_state.h"

/* Replaces an owned text; empty becomes NULL. False when memory is out. */
bool text_replace(char **text, struct view value);
bool key_copy(struct view *out, struct view key);
struct app *app_add(struct core *core, uint32_t num, const struct core_app *info);
void user_store(struct core *core, const struct user *user);

/* Makes room for number num in an array of pointers (index 0 stays unused). */
bool reserve_num(void *array_of_pointers, uint32_t *capacity, uint32_t num);

struct group *group_add(struct core *core, struct app *app, uint32_t num, struct view group_id, bool dissolved);
/* Memory only; the store is the caller's. */
bool group_join(struct core *core, struct group *group, struct user *user, int64_t ordinal);
void group_free(struct group *group);

#endif
