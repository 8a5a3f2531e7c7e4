/* `muster report`: shows a saved report again, in any of its forms. */
#ifndef MUSTER_CLI_MUSTER_REPORT_H
#define MUSTER_CLI_MUSTER_REPORT_H

int command_report(int argc, char **argv);

#endif
