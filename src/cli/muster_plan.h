/* `muster plan`: what a run would do and what it asks of this machine, without doing it; `muster scenarios`: the
 * presets. */
#ifndef MUSTER_CLI_MUSTER_PLAN_H
#define MUSTER_CLI_MUSTER_PLAN_H

/* argv holds what follows the command. */
int command_plan(int argc, char **argv);
int command_scenarios(int argc, char **argv);

#endif
