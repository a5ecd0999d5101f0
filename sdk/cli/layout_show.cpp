// `sonde layout show`: a layout in words and as a grid.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/layout_command.h"
#include "cli/layout_reader.h"
#include "cli/layout_render.h"
#include "cli/report_output.h"

namespace sonde::cli {
namespace {

constexpr const char *kExamples = R"(Examples:
  sonde layout show kernel.ttgir:#mma --shape 16x16
  sonde layout show '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2],
                    instrShape = [16, 8]}>' --shape 32x16 --by warp
  sonde layout show kernel.ttgir:#shared --shape 64x64 --type f16 --format svg -o shared.svg
  sonde layout show kernel.ttgir:#blocked --shape 128x64 --rows 0:16 --columns 32:48

Colours show on a terminal unless NO_COLOR is set; --color always puts them into files too.)";

struct Flags {
  std::string layout;
  LayoutFlags named;
  DrawingOptions drawing;
  std::string by = "thread";
  std::string format = "text";
  std::string output;
  std::string color = "auto";
};

const std::vector<std::pair<std::string, ShownBy>> kWays = {
    {"thread", ShownBy::kThread}, {"register", ShownBy::kRegister}, {"lane", ShownBy::kLane}, {"warp", ShownBy::kWarp},
    {"block", ShownBy::kBlock},   {"offset", ShownBy::kOffset},     {"bank", ShownBy::kBank}, {"all", ShownBy::kAll}};

bool goes_to_output(const Flags &flags) { return flags.output.empty() || flags.output == "-"; }

TerminalColors colors_of(const Flags &flags) {
  const bool wanted =
      flags.color == "always" || (flags.color == "auto" && goes_to_output(flags) && wants_color(STDOUT_FILENO));
  if (!wanted) return TerminalColors::kNone;
  const char *const depth = std::getenv("COLORTERM");
  const std::string_view known = depth == nullptr ? "" : depth;
  return known == "truecolor" || known == "24bit" ? TerminalColors::kTrue : TerminalColors::k256;
}

// As much as the terminal shows; a fixed part elsewhere, so that files are the same everywhere.
void fit_text(const Flags &flags, DrawingOptions &drawing) {
  drawing.most_characters = 150;
  drawing.most_rows = 64;
  winsize size{};
  if (!goes_to_output(flags) || isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col >= 40) drawing.most_characters = size.ws_col - 8u;
  if (size.ws_row >= 20) drawing.most_rows = size.ws_row - 4u;
}

std::string heading(const NamedLayout &named, const Drawing &drawing) {
  std::string text = named.title + "\n" + facts_text(drawing.facts);
  if (named.element_bits != 0) text += fmt::format("element     {} bits\n", named.element_bits);
  // Triton's text begins with an empty line.
  return text + named.layout.print() + "\n";
}

int show(const Context &context, const Flags &flags) {
  const LayoutArena arena(context.host);
  const NamedLayout named = read_layout(arena, flags.layout, flags.named);
  DrawingOptions options = flags.drawing;
  for (const auto &[name, way] : kWays) {
    if (name == flags.by) options.by = way;
  }
  if (flags.format == "text") {
    fit_text(flags, options);
  } else {
    options.most_rows = options.most_columns = flags.format == "svg" ? 128 : 1024;
  }
  const Drawing drawing = about(named.title, [&] { return draw(arena, named, options); });
  if (flags.format == "text") {
    write_output(flags.output, heading(named, drawing) + "\n" + grid_text(drawing, colors_of(flags)));
  } else if (flags.format == "svg") {
    if (drawing.is_cut()) warn(drawing.cut_note());
    write_output(flags.output, grid_svg(drawing));
  } else {
    nlohmann::json result = {{"title", named.title},
                             {"element_bits", named.element_bits},
                             {"layout", nlohmann::json::parse(named.layout.to_json())},
                             {"facts", facts_json(drawing.facts)},
                             {"grid", grid_json(drawing)}};
    write_output(flags.output, result.dump() + "\n");
  }
  return kOk;
}

}  // namespace

Subcommand add_layout_show(CLI::App &layout) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = layout.add_subcommand("show", "Show a layout in words and as a coloured grid");
  app->footer(kExamples);
  app->add_option("LAYOUT", flags->layout, "The layout; `sonde layout --help` says how it is named")->required();
  flags->named.add(*app);
  std::vector<std::string> ways;
  for (const auto &[name, way] : kWays) ways.push_back(name);
  app->add_option("--by", flags->by,
                  "What a cell says and is coloured by: thread (lane:register; offset:bank of memory), register, lane, "
                  "warp, block, offset, bank, all")
      ->check(CLI::IsMember(ways))
      ->capture_default_str();
  app->add_option("--format", flags->format, "text, svg or json")
      ->check(CLI::IsMember({"text", "svg", "json"}))
      ->capture_default_str();
  app->add_option("-o,--output", flags->output, "File to write (default: standard output)");
  app->add_option("--rows", flags->drawing.rows, "Rows to draw: 0:16, 8:, or one number");
  app->add_option("--columns", flags->drawing.columns, "Columns to draw");
  app->add_option("--slices", flags->drawing.slices, "Slices to draw, of tensors of three dims and more");
  app->add_option("--banks", flags->drawing.banks, "Banks of 32 bits that the memory has")
      ->check(CLI::IsMember({16, 32, 64}))
      ->capture_default_str();
  app->add_option("--color", flags->color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) { return show(context, *flags); }};
}

}  // namespace sonde::cli
