/* `muster compare`: two sets of finished runs against each other. */
#ifndef MUSTER_CLI_MUSTER_COMPARE_H
#define MUSTER_CLI_MUSTER_COMPARE_H

/* argv holds what follows `compare`. */
int command_compare(int argc, char **argv);

#endif
