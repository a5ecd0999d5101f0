// Service sonde.config/1: typed options from YAML.
//
// A plugin declares its options as data. The host checks a configuration against them (unknown keys, types, ranges
// and choices are errors with file:line:column) and fills in defaults, so a getter on a declared name cannot fail.
#ifndef SONDE_CONFIG_H
#define SONDE_CONFIG_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_CONFIG_SERVICE "sonde.config/1"

#define SONDE_OPTION_BOOL 1u
#define SONDE_OPTION_I64 2u  // accepts 64Ki, 1Mi, 1Gi, 1k, 1M, 1G
#define SONDE_OPTION_F64 3u  // accepts 3%
#define SONDE_OPTION_TEXT 4u
#define SONDE_OPTION_TEXTS 5u  // list of text
#define SONDE_OPTION_TIME 6u   // integer ns; accepts 10us, 2.5ms, 1s
#define SONDE_OPTION_TREE 7u   // anything; read through the getters below

typedef struct sonde_option_t {
  const char *name;      // snake_case; a dot nests: "idle.threshold"
  const char *fallback;  // default, as it would stand in YAML; NULL: must be given
  const char *help;      // one line, with the source of a threshold
  const char *unit;      // "ns", "bytes", "" ; never NULL
  const char *choices;   // TEXT: allowed words separated by '|', "" any. Numbers: "min..max", "" any
  uint32_t type;         // SONDE_OPTION_*
  uint32_t reserved;
} sonde_option_t;

typedef struct sonde_config_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Parses YAML text; `origin` is what messages call it. Free with release. SONDE_E_PARSE.
  // [any]
  sonde_status (*parse)(const char *text, const char *origin, sonde_config_t **out);

  // Parses a file. SONDE_E_IO, SONDE_E_PARSE.
  // [any]
  sonde_status (*load)(const char *path, sonde_config_t **out);

  // The tree checked against a plugin's options, with defaults. `tree` may be NULL: defaults alone. All faults are
  // reported in one message, one a line. Free with release.
  // SONDE_E_INVALID.
  // [any]
  sonde_status (*check)(const sonde_config_t *tree, const char *origin, const sonde_option_t *options, uint32_t count,
                        uint32_t stride, sonde_config_t **out);

  // [any]
  sonde_status (*release)(sonde_config_t *config);

  // Values by dotted path ("idle.threshold", "plugins.0.name"; "" is the node itself). SONDE_E_NOT_FOUND when there
  // is no such key, SONDE_E_TYPE with file:line:column when it is something else. Text lives as long as the config.
  // [any]
  sonde_status (*get_bool)(const sonde_config_t *config, const char *path, uint32_t *out);
  sonde_status (*get_i64)(const sonde_config_t *config, const char *path, int64_t *out);
  sonde_status (*get_f64)(const sonde_config_t *config, const char *path, double *out);
  sonde_status (*get_text)(const sonde_config_t *config, const char *path, const char **out);
  sonde_status (*get_time)(const sonde_config_t *config, const char *path, int64_t *out);

  // Elements of a list or entries of a map at `path`; 0 for a scalar.
  // [any]
  sonde_status (*count)(const sonde_config_t *config, const char *path, uint64_t *out);

  // Name of the index-th entry of the map at `path`, in the order of the text. SONDE_E_RANGE.
  // [any]
  sonde_status (*key)(const sonde_config_t *config, const char *path, uint64_t index, const char **out);

  // A view of the subtree at `path`; lives as long as `config`, do not release it.
  // [any]
  sonde_status (*child)(const sonde_config_t *config, const char *path, const sonde_config_t **out);

  // "file:line:column" of the node at `path`.
  // [any]
  sonde_status (*where)(const sonde_config_t *config, const char *path, const char **out);

  // The subtree as YAML text; lives as long as `config`.
  // [any]
  sonde_status (*print)(const sonde_config_t *config, const char *path, const char **out);
} sonde_config_service_t;

SONDE_END_DECLS

#endif
