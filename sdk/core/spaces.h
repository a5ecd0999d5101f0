// The registry of spaces and their schemas.
#pragma once

#include <sonde/schema.h>

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace sonde::core {

// Registers a space, or extends it, under the rules of sonde_capture_service_t.register_space; `number` is 0 for "the
// next free one". Returns the space's number. [any]
Result<uint32_t> register_space(const sonde_schema_t &schema, uint32_t number = 0);

// [any]
Result<uint32_t> find_space(std::string_view name);

// NULL when there is no such space. The schema lives for ever; a later extension makes a new one. [any]
const sonde_schema_t *space_schema(uint32_t number);

// Registers sonde.session to sonde.framework under their fixed numbers. [control]
void register_builtin_spaces();

// The space names of this process, separated by spaces, in order of their numbers. [any]
std::string space_names();

// Held around fork.
void lock_spaces();
void unlock_spaces();

}  // namespace sonde::core
