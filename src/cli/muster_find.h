/* `muster find`: the load that a server holds, as an interval. */
#ifndef MUSTER_CLI_MUSTER_FIND_H
#define MUSTER_CLI_MUSTER_FIND_H

/* argv holds what follows `find`. */
int command_find(int argc, char **argv);

#endif
