// What operations on layouts cost: through the C interface, through sonde.hpp, and as a textbook writes them, in one run.
//
//   layout [ROUNDS]
//
// Layouts are those of tiles: registers, lanes and warps of an NVIDIA MMA (v2) and of a blocked layout over 2^8, 2^14,
// 2^20 and 2^40 elements, and a swizzled memory. Each figure is the median over ROUNDS (default 21) of batches, the ways
// interleaved; making the result and giving its memory back (64 results at a time in C and C++) are inside. The last column compares the C interface with
// Triton's LinearLayout as published for a 2-core AMD EPYC of 2.1 GHz (ns: compose 2775, ...); it is a constant, so read
// it together with the textbook's figure, which moves with the machine.
#include <sonde/sonde.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "textbook_layout.h"

namespace {

using Clock = std::chrono::steady_clock;

const sonde::Host host(sonde_host());
const auto &layouts = host.service<sonde_layout_service_t>();
const auto &shapes = host.service<sonde_layout_shape_service_t>();

void check(sonde_status status) { host.check(status); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One way to do an operation; the body does it `batch` times and frees what it made.
struct Way {
  std::function<void(uint64_t batch)> body;
  std::vector<double> ns;
};

template <typename Once>
std::function<void(uint64_t)> repeated(Once once) {
  return [once](uint64_t batch) {
    for (uint64_t i = 0; i < batch; ++i) once();
  };
}

// An arena's memory is given back as its users do it: for many layouts at once.
constexpr uint64_t kReleaseEvery = 64;

void time_once(Way &way) {
  if (!way.body) return;
  uint64_t batch = 1;
  for (;;) {
    const auto begin = Clock::now();
    way.body(batch);
    const double spent = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    if (spent > 200'000) {
      way.ns.push_back(spent / static_cast<double>(batch));
      return;
    }
    batch *= spent < 20'000 ? 8 : 2;
  }
}

struct Row {
  std::string name;
  Way c;
  Way cpp;
  Way textbook;
  double published;  // Triton, ns; 0: none
  double bar;        // times
};

// A set of layouts of one size in both forms.
struct Set {
  uint32_t bits = 0;
  sonde_layout_arena_t *arena = nullptr;
  std::unique_ptr<sonde::LayoutArena> cpp_arena;
  std::map<std::string, textbook::Layout> plain;
  std::map<std::string, const sonde_layout_t *> made;

  void add(const std::string &name, const textbook::Layout &layout) {
    std::vector<sonde_layout_dim_t> ins;
    std::vector<sonde_layout_dim_t> outs;
    std::vector<uint64_t> bases;
    const auto dim = [](const std::string &text) {
      sonde_dim_t id = 0;
      check(layouts.dim(text.c_str(), &id));
      return id;
    };
    for (const auto &in : layout.ins) {
      ins.push_back({dim(in.first), static_cast<uint8_t>(in.second.size()), 0, 0});
      for (const auto &basis : in.second) bases.insert(bases.end(), basis.begin(), basis.end());
    }
    for (const auto &out : layout.outs) {
      outs.push_back({dim(out.first), static_cast<uint8_t>(textbook::log2_of(out.second)), 0, 0});
    }
    const sonde_layout_t *result = nullptr;
    check(layouts.make(arena, ins.data(), static_cast<uint32_t>(ins.size()), outs.data(),
                       static_cast<uint32_t>(outs.size()), bases.data(), nullptr, &result));
    plain[name] = layout;
    made[name] = result;
  }
  const sonde_layout_t *operator[](const std::string &name) const { return made.at(name); }
  sonde::Layout cpp(const std::string &name) const { return sonde::Layout(*cpp_arena, made.at(name)); }
};

// Bits of a tile dealt to in dims: `deal` names, lowest element bit of dim1 first, then dim0, which in dim takes it.
textbook::Layout tile(uint32_t rows, uint32_t columns, const std::vector<std::pair<std::string, uint32_t>> &deal) {
  textbook::Layout layout;
  layout.outs = {{"dim0", int64_t{1} << rows}, {"dim1", int64_t{1} << columns}};
  layout.ins = {{"register", {}}, {"lane", {}}, {"warp", {}}};
  uint32_t at = 0;
  for (const auto &[name, count] : deal) {
    for (uint32_t i = 0; i < count; ++i, ++at) {
      textbook::Basis basis =
          at < columns ? textbook::Basis{0, int64_t{1} << at} : textbook::Basis{int64_t{1} << (at - columns), 0};
      for (auto &in : layout.ins) {
        if (in.first == name) in.second.push_back(basis);
      }
    }
  }
  return layout;
}

Set make_set(uint32_t bits) {
  Set set;
  set.bits = bits;
  check(layouts.open(0, &set.arena));
  set.cpp_arena = std::make_unique<sonde::LayoutArena>(host);
  const uint32_t columns = bits / 2;
  const uint32_t rows = bits - columns;
  const uint32_t warps = bits > 8 ? 2 : 1;
  const uint32_t registers = bits - 5 - warps;
  const uint32_t low = std::min(registers, 3u);
  set.add("blocked",
          tile(rows, columns, {{"register", low}, {"lane", 5}, {"warp", warps}, {"register", registers - low}}));
  set.add("mma", tile(rows, columns,
                      {{"register", 1},
                       {"lane", 2},
                       {"register", columns > 3 ? columns - 3 : 0},
                       {"lane", 3},
                       {"warp", warps},
                       {"register", registers - 1 - (columns > 3 ? columns - 3 : 0)}}));
  // Memory with rows that swizzle the columns' higher half.
  textbook::Layout memory;
  memory.outs = {{"dim0", int64_t{1} << rows}, {"dim1", int64_t{1} << columns}};
  memory.ins = {{"offset", {}}};
  for (uint32_t bit = 0; bit < columns; ++bit) memory.ins[0].second.push_back({0, int64_t{1} << bit});
  for (uint32_t bit = 0; bit < rows; ++bit) {
    const uint32_t mixed = columns / 2 + bit;
    memory.ins[0].second.push_back({int64_t{1} << bit, mixed < columns ? int64_t{1} << mixed : 0});
  }
  set.add("memory", memory);
  set.add("inner", tile(rows, columns, {{"register", registers}, {"lane", 5}, {"warp", warps}}));
  textbook::Layout low_tile;
  low_tile.outs = {{"dim1", 2}};
  low_tile.ins = {{"register", {{1}}}};
  set.add("tile", low_tile);
  textbook::Layout missing = low_tile;
  missing.outs = {{"dim0", 2}};
  set.add("no_tile", missing);
  return set;
}

class Bench {
 public:
  Bench(Set &set, std::vector<Row> &rows) : set_(set), rows_(rows) {}

  // An operation that makes a layout, in the three ways; nullptr where one is not measured.
  template <typename C, typename Cpp, typename Plain>
  void make(const std::string &name, double published, double bar, C c, Cpp cpp, Plain plain) {
    sonde_layout_arena_t *const arena = set_.arena;
    Row row{label(name), {}, {}, {}, set_.bits == 14 ? published : 0, bar};
    row.c.body = [arena, c](uint64_t batch) {
      uint64_t mark[2];
      layouts.mark(arena, mark);
      for (uint64_t i = 0; i < batch; ++i) {
        const sonde_layout_t *out = nullptr;
        if (c(&out) != SONDE_OK) std::abort();
        if (i % kReleaseEvery == kReleaseEvery - 1) layouts.release(arena, mark);
      }
      layouts.release(arena, mark);
    };
    if constexpr (!std::is_null_pointer_v<Cpp>) {
      const sonde::LayoutArena *const own = set_.cpp_arena.get();
      row.cpp.body = [own, cpp](uint64_t batch) {
        for (uint64_t i = 0; i < batch; ++i) {
          (void)cpp();
          if (i % kReleaseEvery == kReleaseEvery - 1) own->reset();
        }
        own->reset();
      };
    }
    if constexpr (!std::is_null_pointer_v<Plain>) row.textbook.body = repeated(plain);
    rows_.push_back(std::move(row));
  }
  // Any other one.
  template <typename C, typename Cpp, typename Plain>
  void run(const std::string &name, double published, double bar, C c, Cpp cpp, Plain plain) {
    Row row{label(name), {}, {}, {}, set_.bits == 14 ? published : 0, bar};
    row.c.body = repeated(c);
    if constexpr (!std::is_null_pointer_v<Cpp>) row.cpp.body = repeated(cpp);
    if constexpr (!std::is_null_pointer_v<Plain>) row.textbook.body = repeated(plain);
    rows_.push_back(std::move(row));
  }

 private:
  std::string label(const std::string &name) const { return name + ", " + std::to_string(set_.bits) + " bits"; }
  Set &set_;
  std::vector<Row> &rows_;
};

void keep(uint64_t value) { __asm__ volatile("" : : "r"(value) : "memory"); }

// The plan and the swizzle of one conversion of 16-bit elements.
void add_plans(Bench &bench, sonde_layout_arena_t *arena, const sonde_layout_t *source,
               const sonde_layout_t *destination, const std::string &what, double published_plan,
               double published_swizzle) {
  static const auto &plans = host.service<sonde_layout_plan_service_t>();
  const auto in_arena = [arena](auto once) {
    return [arena, once] {
      uint64_t mark[2];
      layouts.mark(arena, mark);
      once();
      layouts.release(arena, mark);
    };
  };
  bench.run("plan" + what, published_plan, 20, in_arena([=] {
              sonde_plan_options_t options{};
              options.struct_size = sizeof(options);
              options.bits_per_element = 16;
              options.most_transpositions = 1;
              sonde_plan_t plan{};
              plan.struct_size = sizeof(plan);
              check(plans.plan(arena, source, destination, &options, &plan));
              keep(plan.kind);
            }),
            nullptr, nullptr);
  bench.run("optimal swizzle" + what, published_swizzle, 20, in_arena([=] {
              sonde_swizzle_t swizzle{};
              swizzle.struct_size = sizeof(swizzle);
              check(plans.swizzle(arena, source, destination, 16, 32, &swizzle));
              keep(swizzle.read_conflicts);
            }),
            nullptr, nullptr);
}

// The same for a tile of 128x128 over 4 warps, as a compiler asks for them.
void add_compiler_plans(Set &set, std::vector<Row> &rows) {
  Bench bench(set, rows);
  const auto &encodings = host.service<sonde_layout_encoding_service_t>();
  const auto from = [&](const char *text) {
    sonde_encoding_t *encoding = nullptr;
    check(encodings.parse(text, std::char_traits<char>::length(text), nullptr, 0, &encoding));
    const uint64_t shape[] = {128, 128};
    const sonde_layout_t *layout = nullptr;
    check(encodings.layout(set.arena, encoding, shape, 2, &layout));
    check(encodings.release(encoding));
    return layout;
  };
  add_plans(
      bench, set.arena,
      from("#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"),
      from("#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"),
      " blocked to mma, 128x128 f16", 37600, 11700);
}

void add_rows(Set &set, std::vector<Row> &rows) {
  Bench bench(set, rows);
  sonde_layout_arena_t *const arena = set.arena;
  const auto plain = [&set](const char *name) -> const textbook::Layout & { return set.plain.at(name); };
  const auto *const blocked = set["blocked"];
  const auto *const mma = set["mma"];
  const auto *const memory = set["memory"];
  sonde_layout_view_t view{};
  check(layouts.view(blocked, &view));
  std::vector<uint64_t> bases;
  for (uint32_t bit = 0; bit < view.in_bits; ++bit) {
    for (uint32_t out = 0; out < view.out_count; ++out) {
      bases.push_back(view.columns[bit] >> view.outs[out].shift & ((uint64_t{1} << view.outs[out].bits) - 1));
    }
  }
  bench.make(
      "construct", 1144, 0,
      [=](const sonde_layout_t **out) {
        return layouts.make(arena, view.ins, view.in_count, view.outs, view.out_count, bases.data(), nullptr, out);
      },
      nullptr, [&plain = plain("blocked")] { keep(textbook::Layout(plain).outs.size()); });
  bench.make(
      "product", 0, 0,
      [=, tile = set["tile"]](const sonde_layout_t **out) { return layouts.product(arena, tile, blocked, out); },
      [&set] { return set.cpp("tile") * set.cpp("blocked"); },
      [&a = plain("tile"), &b = plain("blocked")] { keep(textbook::product(a, b).outs.size()); });
  // The memory's offset seen from the registers, and the tile behind it.
  const sonde_layout_t *to_memory = nullptr;
  check(layouts.invert_and_compose(arena, mma, memory, 0, &to_memory));
  const textbook::Layout plain_to_memory = textbook::invert_and_compose(plain("mma"), plain("memory"));
  const sonde::Layout cpp_to_memory(*set.cpp_arena, to_memory);
  bench.make(
      "compose", 2775, 50, [=](const sonde_layout_t **out) { return layouts.compose(arena, to_memory, memory, out); },
      [&set, cpp_to_memory] { return cpp_to_memory.compose(set.cpp("memory")); },
      [=, &b = plain("memory")] { keep(textbook::compose(plain_to_memory, b).outs.size()); });
  bench.make(
      "invert", 21000, 200, [=](const sonde_layout_t **out) { return layouts.invert(arena, memory, out); },
      [&set] { return set.cpp("memory").invert(); },
      [&a = plain("memory")] { keep(textbook::pseudoinvert(a).outs.size()); });
  bench.make(
      "pseudoinvert", 24500, 200, [=](const sonde_layout_t **out) { return layouts.pseudoinvert(arena, mma, out); },
      [&set] { return set.cpp("mma").pseudoinvert(); },
      [&a = plain("mma")] { keep(textbook::pseudoinvert(a).outs.size()); });
  bench.make(
      "invert and compose", 21400, 200,
      [=](const sonde_layout_t **out) { return layouts.invert_and_compose(arena, mma, memory, 0, out); },
      [&set] { return set.cpp("mma").invert_and_compose(set.cpp("memory")); },
      [&a = plain("mma"), &b = plain("memory")] { keep(textbook::invert_and_compose(a, b).outs.size()); });
  if (set.bits == 20) rows.back().published = 27950;
  const sonde_dim_t order[] = {SONDE_DIM_FIRST + 1, SONDE_DIM_FIRST};
  bench.make(
      "transpose", 1618, 50,
      [=](const sonde_layout_t **out) { return shapes.transpose(arena, mma, SONDE_SIDE_OUT, order, 2, out); },
      [&set] {
        return set.cpp("mma").transpose(SONDE_SIDE_OUT, {"dim1", "dim0"});
      },
      [&a = plain("mma")] {
        keep(textbook::transpose_outs(a, {"dim1", "dim0"}).outs.size());
      });
  const sonde_layout_dim_t halves[] = {{SONDE_DIM_OFFSET, static_cast<uint8_t>(set.bits / 2), 0, 0},
                                       {SONDE_DIM_BLOCK, static_cast<uint8_t>(set.bits - set.bits / 2), 0, 0}};
  bench.make(
      "reshape", 2440, 0,
      [=](const sonde_layout_t **out) { return shapes.reshape(arena, mma, SONDE_SIDE_OUT, halves, 2, out); },
      [&set] {
        return set.cpp("mma").reshape(SONDE_SIDE_OUT, {{"offset", uint64_t{1} << (set.bits / 2)},
                                                       {"block", uint64_t{1} << (set.bits - set.bits / 2)}});
      },
      nullptr);
  bench.make(
      "flatten", 1700, 0, [=](const sonde_layout_t **out) { return shapes.flatten(arena, mma, SONDE_SIDE_OUT, out); },
      [&set] { return set.cpp("mma").flatten(SONDE_SIDE_OUT); },
      [&a = plain("mma")] { keep(textbook::flatten_outs(a).outs.size()); });
  const sonde_dim_t some_ins[] = {SONDE_DIM_REGISTER, SONDE_DIM_LANE};
  const sonde_dim_t some_outs[] = {SONDE_DIM_FIRST + 1};
  bench.make(
      "sublayout", 1154, 50,
      [=](const sonde_layout_t **out) { return shapes.sublayout(arena, mma, some_ins, 2, some_outs, 1, out); },
      [&set] {
        return set.cpp("mma").sublayout({"register", "lane"}, {"dim1"});
      },
      [&a = plain("mma")] {
        keep(textbook::sublayout(a, {"register", "lane"}, {"dim1"}).outs.size());
      });
  bench.make(
      "divide, hit", 2190, 0,
      [=, tile = set["tile"]](const sonde_layout_t **out) { return layouts.divide_left(arena, blocked, tile, out); },
      [&set] { return *set.cpp("blocked").divide_left(set.cpp("tile")); }, nullptr);
  bench.run(
      "divide, miss", 0, 0,
      [=, tile = set["no_tile"]] {
        const sonde_layout_t *out = nullptr;
        if (layouts.divide_left(arena, blocked, tile, &out) != SONDE_E_NO_SOLUTION) std::abort();
      },
      nullptr, nullptr);
  bench.run(
      "free masks", 1024, 0,
      [=] {
        uint64_t masks[3];
        check(shapes.free_masks(mma, masks));
        keep(masks[0]);
      },
      nullptr, nullptr);
  const sonde_layout_t *again = nullptr;
  check(layouts.copy(arena, mma, &again));
  bench.run(
      "equality", 36, 0,
      [=] {
        uint32_t same = 0;
        check(layouts.equal(mma, again, SONDE_LAYOUT_EQUAL_EXACT, &same));
        keep(same);
      },
      nullptr, [&a = plain("mma"), b = plain("mma")] { keep(static_cast<uint64_t>(a.ins == b.ins)); });
  bench.run(
      "apply one", 402, 0,
      [=] {
        const uint64_t values[] = {1, 9, 1};
        uint64_t out[2];
        check(layouts.apply(mma, values, out));
        keep(out[0] ^ out[1]);
      },
      [&set] { keep(set.cpp("mma")(25)); },
      [&a = plain("mma")] {
        keep(static_cast<uint64_t>(a.apply({{"register", 1}, {"lane", 9}, {"warp", 1}})[0]));
      });
  add_plans(bench, arena, blocked, mma, "", 0, 0);
  if (set.bits < 14) return;
  bench.run(
      "apply 2^14 points", 5982000, 1000,
      [=, room = std::make_shared<std::vector<uint64_t>>(1 << 14)] {
        check(layouts.table(mma, 0, 1 << 14, room->data()));
        keep((*room)[77]);
      },
      [&set] { keep(set.cpp("mma").table(0, 1 << 14)[77]); }, nullptr);
  if (set.bits > 32) return;
  bench.run(
      "apply 2^14 points, 32 bits each", 5982000, 1000,
      [=, room = std::make_shared<std::vector<uint32_t>>(1 << 14)] {
        check(layouts.table32(mma, 0, 1 << 14, room->data()));
        keep((*room)[77]);
      },
      nullptr, nullptr);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  std::vector<Set> sets;
  std::vector<Row> rows;
  for (const uint32_t bits : {8u, 14u, 20u, 40u}) sets.push_back(make_set(bits));
  for (Set &set : sets) add_rows(set, rows);
  add_compiler_plans(sets[1], rows);
  for (int round = 0; round < rounds; ++round) {
    for (Row &row : rows) {
      time_once(row.c);
      time_once(row.textbook);
      time_once(row.cpp);
    }
  }
  std::printf("%s, median of %d interleaved rounds, ns for one operation\n", processor().c_str(), rounds);
  std::printf("%-44s %10s %10s %10s %9s %10s %9s %5s\n", "", "C", "C++", "textbook", "textb./C", "Triton", "Triton/C",
              "bar");
  for (const Row &row : rows) {
    const double c = median(row.c.ns);
    std::printf("%-44s %10.1f", row.name.c_str(), c);
    const auto figure = [](const Way &way) {
      if (way.ns.empty()) {
        std::printf(" %10s", "");
      } else {
        std::printf(" %10.1f", median(way.ns));
      }
    };
    figure(row.cpp);
    figure(row.textbook);
    if (row.textbook.ns.empty()) {
      std::printf(" %9s", "");
    } else {
      std::printf(" %9.1f", median(row.textbook.ns) / c);
    }
    if (row.published != 0) {
      std::printf(" %10.0f %9.1f", row.published, row.published / c);
      if (row.bar != 0) std::printf(" %5.0f%s", row.bar, row.published / c >= row.bar ? "" : "  below");
    }
    std::printf("\n");
  }
  for (Set &set : sets) check(layouts.close(set.arena));
  return 0;
}
