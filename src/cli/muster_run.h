/* `muster run`: from the command line to the exit code. */
#ifndef MUSTER_CLI_MUSTER_RUN_H
#define MUSTER_CLI_MUSTER_RUN_H

/* argv holds what follows `run`. */
int command_run(int argc, char **argv);

#endif
