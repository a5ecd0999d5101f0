// YAML text to a tree.
//
// What YAML allows and a configuration never needs is refused with its place: a second document, duplicate keys, keys
// that are not scalars, merge keys, tags, anchors that hold themselves. Aliases are copied, and the tree they give is
// bounded, so a text cannot blow up.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/node.h"
#include "core/error.h"

namespace sonde::config {

inline constexpr size_t kMaxBytes = size_t{4} << 20;  // of a text
inline constexpr size_t kMaxNodes = 200'000;          // of a tree, aliases expanded
inline constexpr size_t kMaxDepth = 64;

// SONDE_E_PARSE with file:line:column. An empty text is a null root.
Result<std::unique_ptr<Document>> parse(std::string_view text, const std::string &origin);

// SONDE_E_IO, SONDE_E_PARSE.
Result<std::unique_ptr<Document>> load(const std::string &path);

}  // namespace sonde::config
