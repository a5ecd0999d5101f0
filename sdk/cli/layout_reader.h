// How the command line names a layout: one way for all subcommands of `sonde layout`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace sonde::cli {

// What belongs to a layout's name: flags that all subcommands share.
struct LayoutFlags {
  std::string shape;  // --shape
  std::string type;   // --type
  uint32_t bits = 0;  // --bits, 0: not given

  void add(CLI::App &app);
  // Of an element, by --bits or --type; 0 when neither is given.
  uint32_t element_bits() const;
  // Empty when not given.
  std::vector<uint64_t> shape_sizes() const;
};

struct NamedLayout {
  std::string title;                 // the attribute's text, or how it was named
  std::optional<Encoding> encoding;  // where it came from one
  Layout layout;
  uint32_t element_bits = 0;  // 0: unknown
};

// Throws CommandError: kUsage for what cannot be understood, kInput for files. `name` is one of
//   '#ttg.blocked<{...}>', FILE:#alias, '{"in": ...}', '(4,8):(8,1)', @FILE
NamedLayout read_layout(const LayoutArena &arena, const std::string &name, const LayoutFlags &flags);

// An attribute without its layout: the first two forms. Nothing for other names.
std::optional<Encoding> read_encoding(const Host &host, const std::string &name);

// FILE and #alias of "FILE:#alias"; nothing for other names.
std::optional<std::pair<std::string, std::string>> module_and_alias(const std::string &name);

// A shape that a module's tensors and buffers have.
struct UsedShape {
  std::vector<uint64_t> shape;
  uint32_t bits = 0;  // of an element; 0: unknown

  bool operator==(const UsedShape &) const = default;
};
// Distinct shapes of the types that name `alias`, in order; of a buffer of several stages that of a stage. Empty where
// the module cannot be read or uses none.
std::vector<UsedShape> shapes_of(const LayoutArena &arena, std::string_view module, std::string_view alias,
                                 const Encoding &encoding);

// The whole of a file; CommandError kInput.
std::string read_file(const std::string &path);
// Writes a file, whole or not at all; "" and "-" are standard output.
void write_output(const std::string &path, std::string_view text);

// The exit status for an error of the layout services: what a user can mend in the command line is kUsage.
int layout_exit_code(sonde_status status);

// Runs a body that reads what the user named; a failure of the host becomes a CommandError that begins with the name.
template <typename Body>
auto about(const std::string &name, Body &&body) {
  try {
    return body();
  } catch (const Failure &failure) {
    throw CommandError(layout_exit_code(failure.status()), name + ": " + failure.what());
  }
}
// The same for a file's content, which is kInput.
template <typename Body>
auto about_file(const std::string &path, Body &&body) {
  try {
    return body();
  } catch (const Failure &failure) {
    const int code = layout_exit_code(failure.status());
    throw CommandError(code == kUsage ? kInput : code, path + ": " + failure.what());
  }
}

// A name that fits into a message.
std::string short_name(const std::string &name);
std::string shape_text(const std::vector<uint64_t> &shape);  // "128x64"

}  // namespace sonde::cli
