// `sonde layout plan`: how data gets from one register layout into another, and what it costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/layout_command.h"
#include "cli/layout_facts.h"
#include "cli/layout_reader.h"
#include "toolkit/text.h"

namespace sonde::cli {
namespace {

constexpr const char *kExamples = R"(Examples:
  sonde layout plan kernel.ttgir:#blocked kernel.ttgir:#mma --shape 128x64 --type f16
  sonde layout plan '#ttg.blocked<{...}>' '#ttg.dot_op<{...}>' --shape 64x64 --bits 16 --stmatrix --ldmatrix
  sonde layout plan @from.json @to.json --bits 32 --only-memory --format json
  sonde layout plan kernel.ttgir:#shared kernel.ttgir:#blocked --shape 64x64    loads from a memory that is given

Wavefronts are counted for all instructions of one warp; conflicts are those that a memory without bank conflicts would
save. Shuffles and selects are instructions on 32 bits, for each thread.)";

struct Flags {
  std::string source;
  std::string destination;
  LayoutFlags named;
  PlanOptions options;
  std::string format = "text";
};

// Of a dim of the holders, the share of the elements that change it.
struct Move {
  std::string dim;
  double share = 0;
};

uint32_t rank_of(const LayoutArena &arena, const std::vector<uint64_t> &columns) {
  const auto &service = arena.host().service<sonde_layout_service_t>();
  const sonde_layout_dim_t in = {arena.dim("column"), static_cast<uint8_t>(columns.size()), 0, 0};
  const sonde_layout_dim_t out = {arena.dim("value"), 63, 0, 0};
  const sonde_layout_t *made = nullptr;
  arena.host().check(service.make(arena.get(), &in, 1, &out, 1, columns.data(), nullptr, &made));
  return Layout(arena, made).rank();
}

// The elements whose value of a dim stays solve D x = offset, where D is the dim's part of the conversion plus the
// identity: 2^-rank(D) of all, or none where there is no solution.
std::vector<Move> moves_of(const LayoutArena &arena, const Layout &conversion) {
  const LayoutFacts facts = facts_of(arena, conversion);
  const sonde_layout_view_t view = conversion.view();
  std::vector<Move> moves;
  if (facts.in_bits > 62) return moves;
  for (const NamedDim &out : facts.outs) {
    std::vector<uint64_t> difference;
    for (uint32_t bit = 0; bit < view.in_bits; ++bit) difference.push_back(out.value_in(view.columns[bit]));
    for (const NamedDim &in : facts.ins) {
      if (in.name != out.name) continue;
      for (uint32_t bit = 0; bit < in.bits; ++bit) difference[in.shift + bit] ^= uint64_t{1} << bit;
    }
    const uint32_t rank = rank_of(arena, difference);
    difference.push_back(out.value_in(view.offset));
    const bool some_stay = rank_of(arena, difference) == rank;
    moves.push_back({out.name, some_stay ? 1.0 - 1.0 / static_cast<double>(uint64_t{1} << rank) : 1.0});
  }
  return moves;
}

std::string instruction_text(const sonde_plan_access_t &access, bool is_store) {
  switch (access.instruction) {
    case SONDE_INSTRUCTION_MATRIX:
      return is_store ? "stmatrix" : "ldmatrix";
    case SONDE_INSTRUCTION_MATRIX_TRANSPOSED:
      return is_store ? "stmatrix.trans" : "ldmatrix.trans";
    default:
      return is_store ? "st.shared" : "ld.shared";
  }
}

std::string access_text(const char *name, const sonde_plan_access_t &access, bool is_store) {
  return fmt::format("{:<13}{:<15}  {:>4} bits a lane  {:>5} a thread  {:>6} wavefronts a warp  {:>6} conflicts\n",
                     name, instruction_text(access, is_store), access.vector_bits, access.instructions,
                     access.wavefronts, access.conflicts);
}

nlohmann::json access_json(const sonde_plan_access_t &access, bool is_store) {
  return {{"instruction", instruction_text(access, is_store)},
          {"vector_bits", access.vector_bits},
          {"instructions", access.instructions},
          {"wavefronts", access.wavefronts},
          {"conflicts", access.conflicts}};
}

// A line for each in dim, with its bases; long ones are cut to the line.
std::string memory_text(const LayoutArena &arena, const Layout &memory) {
  constexpr size_t kMostLetters = 104;
  const LayoutFacts facts = facts_of(arena, memory);
  const sonde_layout_view_t view = memory.view();
  std::string text;
  for (const NamedDim &in : facts.ins) {
    std::string bases;
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      std::vector<uint64_t> values;
      for (const NamedDim &out : facts.outs) values.push_back(out.value_in(view.columns[in.shift + bit]));
      bases += fmt::format(" ({})", fmt::join(values, ", "));
    }
    if (bases.size() > kMostLetters) bases = bases.substr(0, bases.rfind(" (", kMostLetters)) + " ...";
    text += fmt::format("  {:<11}{}\n", in.name, bases.empty() ? " -" : bases);
  }
  return text;
}

std::string plan_text(const LayoutArena &arena, const NamedLayout &source, const NamedLayout &destination,
                      const Plan &plan, const PlanOptions &options) {
  std::string text = fmt::format("from         {}\nto           {}\nelement      {} bits\n\nplan         {}\n",
                                 source.title, destination.title, options.bits_per_element, plan.kind_text);
  if (plan.conversion_layout() && plan.kind != SONDE_PLAN_NOTHING) {
    std::vector<std::string> parts;
    for (const Move &move : moves_of(arena, *plan.conversion_layout())) {
      parts.push_back(fmt::format("{} {}", move.dim, toolkit::format_share(move.share)));
    }
    text += fmt::format("moves        elements that come from another: {}\n", fmt::join(parts, ", "));
  }
  const auto count = [](uint64_t copies) { return copies == UINT64_MAX ? "2^64" : fmt::format("{}", copies); };
  text += fmt::format("holders      each element: {} in the source, {} in the destination\n", count(plan.source_copies),
                      count(plan.destination_copies));
  const bool uses_memory = plan.memory_layout().has_value();
  if (plan.kind == SONDE_PLAN_SHUFFLES) {
    text += fmt::format("shuffles     {} shuffles, {} selects a thread\n", plan.shuffles, plan.selects);
  } else if (uses_memory && plan.shuffles != 0) {
    text += fmt::format("shuffles     {} shuffles, {} selects a thread would do it too\n", plan.shuffles, plan.selects);
  }
  if (!uses_memory) return text;
  text += fmt::format("memory       {} a block; {}\n", toolkit::format_bytes(plan.shared_bytes),
                      plan.repetitions == 1 ? std::string("all at once")
                                            : fmt::format("in {} rounds that use it again", plan.repetitions));
  text += access_text("store", plan.store, true) + access_text("load", plan.load, false);
  return text +
         fmt::format("\nmemory layout, bases of ({}):\n",
                     [&] {
                       std::vector<std::string> names;
                       for (const NamedDim &out : facts_of(arena, *plan.memory_layout()).outs)
                         names.push_back(out.name);
                       return fmt::format("{}", fmt::join(names, ", "));
                     }()) +
         memory_text(arena, *plan.memory_layout());
}

nlohmann::json plan_json(const LayoutArena &arena, const NamedLayout &source, const NamedLayout &destination,
                         const Plan &plan, const PlanOptions &options) {
  nlohmann::json result = {{"source", source.title},
                           {"destination", destination.title},
                           {"element_bits", options.bits_per_element},
                           {"kind", plan.kind_text},
                           {"source_copies", plan.source_copies},
                           {"destination_copies", plan.destination_copies},
                           {"shuffles", plan.shuffles},
                           {"selects", plan.selects},
                           {"shared_bytes", plan.shared_bytes},
                           {"repetitions", plan.repetitions},
                           {"conversion", nullptr},
                           {"memory", nullptr},
                           {"store", nullptr},
                           {"load", nullptr}};
  if (plan.conversion_layout()) {
    result["conversion"] = nlohmann::json::parse(plan.conversion_layout()->to_json());
    for (const Move &move : moves_of(arena, *plan.conversion_layout())) result["moved_share"][move.dim] = move.share;
  }
  if (plan.memory_layout()) {
    result["memory"] = nlohmann::json::parse(plan.memory_layout()->to_json());
    result["store"] = access_json(plan.store, true);
    result["load"] = access_json(plan.load, false);
  }
  return result;
}

// One warp's plain accesses of a register layout to a memory that is given.
struct GivenAccess {
  bool is_store = false;
  sonde_bank_access_t banks{};
};

bool is_memory(const NamedLayout &named) {
  const sonde_layout_view_t view = named.layout.view();
  return std::any_of(view.ins, view.ins + view.in_count,
                     [](const sonde_layout_dim_t &in) { return in.name == SONDE_DIM_OFFSET; });
}

GivenAccess access_of(const LayoutArena &arena, const NamedLayout &source, const NamedLayout &destination,
                      const PlanOptions &options) {
  GivenAccess access;
  access.is_store = is_memory(destination);
  const NamedLayout &memory = access.is_store ? destination : source;
  const NamedLayout &registers = access.is_store ? source : destination;
  if (memory.encoding && memory.encoding->kind().starts_with("padded")) {
    throw CommandError(kUsage, fmt::format("{}: bank conflicts of padded memory are not counted here; `sonde layout "
                                           "show --by bank` shows its banks",
                                           short_name(memory.title)));
  }
  const auto &service = arena.host().service<sonde_layout_plan_service_t>();
  access.banks.struct_size = sizeof(access.banks);
  // (register, lane, ...) -> tensor -> (offset, ...).
  const Layout map = registers.layout.compose(memory.layout.pseudoinvert());
  arena.host().check(service.bank_access(arena.get(), map.get(), SONDE_DIM_OFFSET, options.bits_per_element,
                                         options.banks == 0 ? 32 : options.banks, 0, &access.banks));
  return access;
}

std::string given_text(const NamedLayout &source, const NamedLayout &destination, const GivenAccess &access,
                       const PlanOptions &options) {
  const sonde_bank_access_t &banks = access.banks;
  return fmt::format("from         {}\nto           {}\nelement      {} bits\n\n", source.title, destination.title,
                     options.bits_per_element) +
         fmt::format("plan         {} given memory, without matrix instructions\n",
                     access.is_store ? "stores to a" : "loads from a") +
         access_text(access.is_store ? "store" : "load",
                     {SONDE_INSTRUCTION_VECTOR, banks.access_bits, banks.instructions, banks.total, banks.conflicts},
                     access.is_store) +
         fmt::format("each         {} wavefronts, of which {} are needed\n", banks.wavefronts, banks.phases);
}

nlohmann::json given_json(const NamedLayout &source, const NamedLayout &destination, const GivenAccess &access,
                          const PlanOptions &options) {
  const sonde_bank_access_t &banks = access.banks;
  return {{"source", source.title},
          {"destination", destination.title},
          {"element_bits", options.bits_per_element},
          {"kind", access.is_store ? "stores to a given memory" : "loads from a given memory"},
          {access.is_store ? "store" : "load",
           access_json({SONDE_INSTRUCTION_VECTOR, banks.access_bits, banks.instructions, banks.total, banks.conflicts},
                       access.is_store)}};
}

// Refuses what holds its data neither in registers nor, on one side, in shared memory.
void check_sides(const NamedLayout &source, const NamedLayout &destination) {
  for (const NamedLayout *named : {&source, &destination}) {
    if (named->encoding && named->encoding->space() == SONDE_ENCODING_TENSOR_MEMORY) {
      throw CommandError(kUsage,
                         short_name(named->title) + " is tensor memory; plans are of registers and shared memory");
    }
  }
  if (is_memory(source) && is_memory(destination)) {
    throw CommandError(kUsage, "both sides are memories; one of them has to be a layout of registers");
  }
}

int plan(const Context &context, const Flags &flags) {
  const LayoutArena arena(context.host);
  const NamedLayout source = read_layout(arena, flags.source, flags.named);
  const NamedLayout destination = read_layout(arena, flags.destination, flags.named);
  check_sides(source, destination);
  PlanOptions options = flags.options;
  options.bits_per_element = source.element_bits != 0 ? source.element_bits : destination.element_bits;
  if (options.bits_per_element == 0) {
    throw CommandError(kUsage, "give the element's size: --bits 16 or --type f16");
  }
  if (is_memory(source) || is_memory(destination)) {
    const GivenAccess access = about("plan", [&] { return access_of(arena, source, destination, options); });
    write_output("", flags.format == "json" ? given_json(source, destination, access, options).dump() + "\n"
                                            : given_text(source, destination, access, options));
    return kOk;
  }
  const Plan made = about("plan", [&] { return Plan::make(arena, source.layout, destination.layout, options); });
  if (flags.format == "json") {
    write_output("", plan_json(arena, source, destination, made, options).dump() + "\n");
  } else {
    write_output("", plan_text(arena, source, destination, made, options));
  }
  return kOk;
}

}  // namespace

Subcommand add_layout_plan(CLI::App &layout) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = layout.add_subcommand("plan", "Plan a conversion between two layouts, and say what it costs");
  app->footer(kExamples);
  app->add_option("SOURCE", flags->source, "Where the data is; `sonde layout --help` says how it is named")->required();
  app->add_option("DESTINATION", flags->destination, "Where it is wanted")->required();
  flags->named.add(*app);
  app->add_flag("--stmatrix", flags->options.has_store_matrix, "The device has stmatrix");
  app->add_flag("--ldmatrix", flags->options.has_load_matrix, "The device has ldmatrix");
  app->add_flag("--only-memory", flags->options.only_memory, "Through shared memory even where less would do");
  app->add_option("--banks", flags->options.banks, "Banks of 32 bits that the memory has (default: 32)")
      ->check(CLI::IsMember({16, 32, 64}));
  app->add_option("--vector-bits", flags->options.most_vector_bits,
                  "Most bits that a lane moves by one instruction (default: 128)")
      ->check(CLI::IsMember({8, 16, 32, 64, 128}));
  app->add_option("--format", flags->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) { return plan(context, *flags); }};
}

}  // namespace sonde::cli
