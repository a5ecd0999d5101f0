// Schemas of the built-in spaces that lie in files of their own.
#pragma once

#include <sonde/schema.h>

#include <cstddef>

namespace sonde::core {

struct BuiltIn {
  uint32_t number;
  sonde_schema_t schema;
};

template <size_t Count>
constexpr BuiltIn built_in(uint32_t number, const char *name, const char *help,
                           const sonde_record_type_t (&types)[Count]) {
  return {number, {sizeof(sonde_schema_t), Count, name, help, types, sizeof(sonde_record_type_t), 0}};
}

BuiltIn access_space();
BuiltIn sample_space();

}  // namespace sonde::core
