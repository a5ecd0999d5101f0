// Service sonde.run/1: a whole run from one configuration.
//
// A run is a session with its ports, analyses, scripts and outputs, described by one YAML file:
//
//   session:  {policy: drop, ring: 1Mi, memory: 64Mi}
//   ports:    {host: {}, cuda: {api: true}}
//   record:   {path: out/run, level: 3}          # a run directory; left out: nothing is recorded
//   analyses: {workload: {idle_share: 0.3}}
//   scripts:  [{path: top.lua, options: {rows: 10}, memory: 64Mi, deadline: 1s, grant: [workload]}]
//   outputs:  [{format: text}, {format: json, path: report.json}]
//   plugins:  {path: [./mine]}
//
// Every flag of the `sonde` command has its key here.
#ifndef SONDE_RUN_H
#define SONDE_RUN_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_RUN_SERVICE "sonde.run/1"

typedef struct sonde_run_t sonde_run_t;

// Entries of libsonde_inject.so itself, beside the foreign ones of port.h; their argument is NULL where none is named.
#define SONDE_ENTRY_PRELOAD 64u      // a preloaded process begins: the run starts if its configuration wants that
#define SONDE_ENTRY_EXIT 65u         // the process ends now: the run is finished, within its deadlines
#define SONDE_ENTRY_EXEC 66u         // another image follows: as EXIT
#define SONDE_ENTRY_EXEC_FAILED 67u  // none did: what follows goes to a new file
#define SONDE_ENTRY_HOST 69u         // the program asked for the host: the run starts if it has the port `host`
// In a forked child: goes on in a run of its own if the parent had one. In the parent: records the fork; the argument
// points to the child's process id, a uint64_t.
#define SONDE_ENTRY_FORK 68u

typedef struct sonde_run_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Builds the run that `config` (a tree as above; NULL: empty) describes: opens the session, loads plugins, creates
  // instances. On error everything made is undone. `config` is not kept.
  // [control]
  sonde_status (*open)(const sonde_config_t *config, sonde_run_t **out);

  // Starts recording, analyses, the session and the ports, in this order.
  // [control]
  sonde_status (*start)(sonde_run_t *run);

  // Stops the ports and the session, finishes analyses and recording, writes the outputs.
  // [control]
  sonde_status (*finish)(sonde_run_t *run);

  // Instead of start and ports: replays the capture at `path` through the run; finish follows.
  // [control]
  sonde_status (*replay)(sonde_run_t *run, const char *path,
                         sonde_status (*progress)(void *user, uint64_t done, uint64_t total), void *user);

  // The run's session; lives until close.
  // [any]
  sonde_status (*session)(sonde_run_t *run, sonde_session_t **out);

  // Frees the run with its session and results; finishes it first where needed.
  // [control]
  sonde_status (*close)(sonde_run_t *run);

  // Hands a foreign entry (SONDE_ENTRY_*, port.h) to the ports that this process's environment asks for; opens and
  // starts the run named by $SONDE_RUN at the first call. For libsonde_inject.so.
  // [any]
  sonde_status (*inject)(uint32_t entry, void *argument);
} sonde_run_service_t;

SONDE_END_DECLS

#endif
