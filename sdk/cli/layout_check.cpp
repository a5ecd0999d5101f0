// `sonde layout check`: whether layouts can be read, built and written, and whether two are the same.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/layout_command.h"
#include "cli/layout_facts.h"
#include "cli/layout_reader.h"

namespace sonde::cli {
namespace {

constexpr const char *kExamples =
    R"(A LAYOUT may also be a whole module (kernel.ttgir: every attribute in it, built for each shape that it is used with)
or a file of JSON or bytes. An attribute without --shape is read, but not built.

Examples:
  sonde layout check kernel.ttgir
  sonde layout check mma.json '#ttg.slice<{dim = 0, parent = #ttg.blocked<{...}>}>' --shape 128
  sonde layout check --same kernel.ttgir:#linear kernel.ttgir:#mma --shape 64x64

Exit status: 0 everything is right (the same), 1 something is wrong (they differ), 2 the command line is wrong, 3 a
file is missing.)";

struct Flags {
  std::vector<std::string> layouts;
  LayoutFlags named;
  bool is_same = false;
  std::string format = "text";
};

struct Verdict {
  std::string name;
  std::string place;    // "3:10" in a module, "" elsewhere
  std::string problem;  // "" when it is right
  std::string note;     // what was looked at

  bool is_good() const { return problem.empty(); }
};

// "" when the layout comes back from JSON and from bytes as it was.
std::string trip_problem(const LayoutArena &arena, const Layout &layout) {
  if (arena.from_json(layout.to_json()) != layout) return "its JSON reads back as another layout";
  if (arena.from_bytes(layout.to_bytes()) != layout) return "its bytes read back as another layout";
  return "";
}

// "" when the encoding's text reads back as the same text.
std::string text_problem(const Host &host, const Encoding &encoding) {
  const std::string text = encoding.text();
  return Encoding::parse(host, text).text() == text ? "" : "its text reads back as another attribute";
}

// Runs a body that returns a problem or ""; a failure is the problem.
template <typename Body>
std::string problem_of(Body &&body) {
  try {
    return body();
  } catch (const Failure &failure) {
    if (layout_exit_code(failure.status()) == kInternal) throw;
    return failure.what();
  } catch (const CommandError &error) {
    if (error.code() != kUsage) throw;
    return error.what();
  }
}

std::string place_in(std::string_view text, uint64_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t line_begin = before.rfind('\n');
  return fmt::format("{}:{}", 1 + std::count(before.begin(), before.end(), '\n'),
                     offset - (line_begin == std::string_view::npos ? 0 : line_begin + 1) + 1);
}

void check_module(const LayoutArena &arena, const std::string &path, const std::string &module,
                  std::vector<Verdict> &verdicts) {
  const std::vector<FoundEncoding> found = Encoding::scan(arena.host(), module);
  if (found.empty()) verdicts.push_back({path, "", "", "no layouts in it"});
  std::set<std::string> seen;  // attributes that stand in place are often the same
  for (const FoundEncoding &one : found) {
    if (one.alias.empty() && one.error.empty() && !seen.insert(one.text).second) continue;
    Verdict verdict{path + ":" + (one.alias.empty() ? "#..." : "#" + one.alias), place_in(module, one.offset), "", ""};
    if (!one.error.empty()) {
      verdict.problem = one.error;
      verdicts.push_back(std::move(verdict));
      continue;
    }
    std::vector<std::string> built;
    verdict.problem = problem_of([&]() -> std::string {
      const Encoding encoding = Encoding::parse(arena.host(), one.text);
      if (std::string problem = text_problem(arena.host(), encoding); !problem.empty()) return problem;
      const std::string written = one.alias.empty() ? module.substr(one.offset, one.bytes) : "#" + one.alias;
      for (const UsedShape &used : shapes_of(arena, module, written, encoding)) {
        const std::string shape = shape_text(used.shape);
        if (std::find(built.begin(), built.end(), shape) != built.end()) continue;
        std::string problem = problem_of([&] { return trip_problem(arena, encoding.layout(arena, used.shape)); });
        if (!problem.empty()) return shape + ": " + problem;
        built.push_back(shape);
      }
      return "";
    });
    verdict.note = built.empty() ? "read; no tensor uses it" : fmt::format("built for {}", fmt::join(built, ", "));
    verdicts.push_back(std::move(verdict));
  }
}

void check_one(const LayoutArena &arena, const std::string &name, const LayoutFlags &flags,
               std::vector<Verdict> &verdicts) {
  std::error_code ignored;
  const bool is_file =
      !name.starts_with('#') && !name.starts_with('{') && std::filesystem::is_regular_file(name, ignored);
  if (is_file) {
    const std::string content = read_file(name);
    const size_t begin = std::min(content.find_first_not_of(" \t\r\n"), content.size());
    if (content[begin] != '{' && !content.starts_with("SNDL")) return check_module(arena, name, content, verdicts);
    Verdict verdict{name, "", "", "read"};
    try {
      verdict.problem = trip_problem(arena, read_layout(arena, "@" + name, flags).layout);
    } catch (const CommandError &error) {
      // The file's name begins the text already.
      if (error.code() == kInternal) throw;
      verdict.problem = error.what();
    }
    verdicts.push_back(std::move(verdict));
    return;
  }
  if (!name.starts_with('#') && !name.starts_with('{') && !name.starts_with('@') && !name.starts_with('(') &&
      name.find(':') == std::string::npos) {
    throw CommandError(kInput, fmt::format("cannot read {}: no such file", name));
  }
  Verdict verdict{short_name(name), "", "", ""};
  verdict.problem = problem_of([&]() -> std::string {
    const std::optional<Encoding> encoding = read_encoding(arena.host(), name);
    if (encoding) {
      if (std::string problem = text_problem(arena.host(), *encoding); !problem.empty()) return problem;
      if (flags.shape.empty()) {
        verdict.note = "read; --shape would build it";
        return "";
      }
    }
    const Layout layout = read_layout(arena, name, flags).layout;
    verdict.note = "built";
    return trip_problem(arena, layout);
  });
  verdicts.push_back(std::move(verdict));
}

// The bases of a layout by in dim, each with a value for each out dim of more than one value.
std::map<std::string, std::vector<std::map<std::string, uint64_t>>> bases_of(const LayoutFacts &facts,
                                                                             const sonde_layout_view_t &view) {
  std::map<std::string, std::vector<std::map<std::string, uint64_t>>> result;
  for (const NamedDim &in : facts.ins) {
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      std::map<std::string, uint64_t> &basis = result[in.name].emplace_back();
      for (const NamedDim &out : facts.outs) {
        if (out.bits != 0) basis[out.name] = out.value_in(view.columns[in.shift + bit]);
      }
    }
  }
  return result;
}

std::string basis_text(const std::map<std::string, uint64_t> &basis) {
  std::vector<std::string> parts;
  for (const auto &[name, value] : basis) parts.push_back(fmt::format("{} {}", name, value));
  return parts.empty() ? "0" : fmt::format("({})", fmt::join(parts, ", "));
}

// Why two layouts that are not equal as maps are not.
std::string difference(const LayoutArena &arena, const Layout &a, const Layout &b) {
  const LayoutFacts facts_a = facts_of(arena, a);
  const LayoutFacts facts_b = facts_of(arena, b);
  const auto sizes = [](const std::vector<NamedDim> &dims) {
    std::map<std::string, uint64_t> result;
    for (const NamedDim &dim : dims) {
      if (dim.bits != 0) result[dim.name] = dim.size();
    }
    return result;
  };
  const auto compare = [](const char *side, const auto &own, const auto &other) -> std::string {
    return own == other ? "" : fmt::format("their {} dims differ: {} and {}", side, basis_text(own), basis_text(other));
  };
  std::string text = compare("in", sizes(facts_a.ins), sizes(facts_b.ins));
  if (text.empty()) text = compare("out", sizes(facts_a.outs), sizes(facts_b.outs));
  if (!text.empty()) return text;
  const auto bases_a = bases_of(facts_a, a.view());
  const auto bases_b = bases_of(facts_b, b.view());
  for (const auto &[name, rows] : bases_a) {
    for (size_t bit = 0; bit < rows.size(); ++bit) {
      const auto &other = bases_b.at(name)[bit];
      if (rows[bit] != other) {
        return fmt::format("{} {} is at {} in the first, at {} in the second", name, uint64_t{1} << bit,
                           basis_text(rows[bit]), basis_text(other));
      }
    }
  }
  return "they map 0 to different elements";
}

int check_same(const LayoutArena &arena, const Flags &flags) {
  if (flags.layouts.size() != 2) throw CommandError(kUsage, "--same compares two layouts");
  const NamedLayout a = read_layout(arena, flags.layouts[0], flags.named);
  const NamedLayout b = read_layout(arena, flags.layouts[1], flags.named);
  const bool is_same = a.layout.equal(b.layout, SONDE_LAYOUT_EQUAL_AS_MAPS);
  const std::string why = is_same ? "" : difference(arena, a.layout, b.layout);
  if (flags.format == "json") {
    fmt::print("{}\n", nlohmann::json({{"same", is_same}, {"difference", why}}).dump());
  } else {
    fmt::print("{}\n", is_same ? "the same" : "different: " + why);
  }
  return is_same ? kOk : kFound;
}

int check(const Context &context, const Flags &flags) {
  const LayoutArena arena(context.host);
  if (flags.is_same) return check_same(arena, flags);
  std::vector<Verdict> verdicts;
  for (const std::string &name : flags.layouts) check_one(arena, name, flags.named, verdicts);
  const auto wrong = std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict &one) { return !one.is_good(); });
  if (flags.format == "json") {
    nlohmann::json list = nlohmann::json::array();
    for (const Verdict &one : verdicts) {
      list.push_back({{"name", one.name},
                      {"place", one.place},
                      {"good", one.is_good()},
                      {"problem", one.problem},
                      {"note", one.note}});
    }
    const auto text = nlohmann::json({{"layouts", list}, {"wrong", wrong}})
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fmt::print("{}\n", text);
  } else {
    for (const Verdict &one : verdicts) {
      const std::string at = one.place.empty() ? "" : fmt::format(" ({})", one.place);
      fmt::print("{}  {}{}: {}\n", one.is_good() ? "ok   " : "WRONG", one.name, at,
                 one.is_good() ? one.note : one.problem);
    }
    fmt::print("{} of {} wrong\n", wrong, verdicts.size());
  }
  return wrong == 0 ? kOk : kFound;
}

}  // namespace

Subcommand add_layout_check(CLI::App &layout) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = layout.add_subcommand("check", "Check that layouts are right, or that two are the same");
  app->footer(kExamples);
  app->add_option("LAYOUT", flags->layouts, "Modules, files, or layouts as `sonde layout --help` names them")
      ->required();
  flags->named.add(*app);
  app->add_flag("--same", flags->is_same, "Whether two layouts are the same map, whatever the order of their dims");
  app->add_option("--format", flags->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) { return check(context, *flags); }};
}

}  // namespace sonde::cli
