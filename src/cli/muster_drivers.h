/* `muster drivers`: the protocols, what each can do, what its ACK means and what its deliveries promise. */
#ifndef MUSTER_CLI_MUSTER_DRIVERS_H
#define MUSTER_CLI_MUSTER_DRIVERS_H

/* argv holds what follows the command. */
int command_drivers(int argc, char **argv);

#endif
