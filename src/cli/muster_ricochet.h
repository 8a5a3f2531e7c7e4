/* `muster ricochet`: takes the arguments of ricochet-bench as they are typed for it and runs the same scenario. */
#ifndef MUSTER_CLI_MUSTER_RICOCHET_H
#define MUSTER_CLI_MUSTER_RICOCHET_H

int command_ricochet(int argc, char **argv);

#endif
