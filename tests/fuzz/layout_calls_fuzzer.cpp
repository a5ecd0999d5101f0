// The layout services as a careless program calls them: a sequence of calls with arguments from the input, over a small
// pool of layouts. Every answer is a status; what is given out can be read, and what is not is NULL.
#include <sonde/layout.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_shape.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "layout/service.h"

namespace {

template <typename Service>
const Service &service(const char *id) {
  for (const auto &entry : sonde::layout::services(nullptr)) {
    if (std::strcmp(entry.id, id) == 0) return *static_cast<const Service *>(entry.table);
  }
  std::abort();
}

class Input {
 public:
  Input(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  bool is_over() const { return at_ == size_; }
  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  uint64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 3; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const uint8_t *data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const auto &layouts = service<sonde_layout_service_t>(SONDE_LAYOUT_SERVICE);
  static const auto &shapes = service<sonde_layout_shape_service_t>(SONDE_LAYOUT_SHAPE_SERVICE);
  static const auto &plans = service<sonde_layout_plan_service_t>(SONDE_LAYOUT_PLAN_SERVICE);
  static const sonde_dim_t names[] = {SONDE_DIM_REGISTER, SONDE_DIM_LANE,  SONDE_DIM_WARP,      SONDE_DIM_BLOCK,
                                      SONDE_DIM_OFFSET,   SONDE_DIM_FIRST, SONDE_DIM_FIRST + 1, 0};
  Input input(data, size);
  sonde_layout_arena_t *arena = nullptr;
  if (layouts.open(1 << 20, &arena) != SONDE_OK) std::abort();
  std::vector<const sonde_layout_t *> pool{nullptr};
  const auto pick = [&] { return pool[input.byte() % pool.size()]; };
  const auto name = [&] { return names[input.byte() % 8]; };
  while (!input.is_over() && pool.size() < 64) {
    const sonde_layout_t *out = nullptr;
    sonde_status status = SONDE_OK;
    bool makes = true;
    const sonde_dim_t some[] = {name(), name()};
    const uint32_t side = input.byte() % 3;
    switch (input.byte() % 24) {
      case 0: {
        sonde_layout_dim_t ins[2] = {{name(), static_cast<uint8_t>(input.byte() % 9), 0, 0},
                                     {name(), static_cast<uint8_t>(input.byte() % 9), 0, 0}};
        sonde_layout_dim_t outs[2] = {{name(), static_cast<uint8_t>(input.byte() % 9), 0, 0},
                                      {name(), static_cast<uint8_t>(input.byte() % 9), 0, 0}};
        uint64_t bases[64];
        for (uint64_t &basis : bases) basis = input.word() & 0xff;
        status = layouts.make(arena, ins, 2, outs, 2, bases, nullptr, &out);
        break;
      }
      case 1:
        status = layouts.strided(arena, uint64_t{1} << input.byte() % 64, input.word(), name(), name(), &out);
        break;
      case 2:
        status = layouts.zeros(arena, input.word(), name(), name(), input.word(), &out);
        break;
      case 3:
        status = layouts.product(arena, pick(), pick(), &out);
        break;
      case 4:
        status = layouts.divide_left(arena, pick(), pick(), &out);
        break;
      case 5:
        status = layouts.divide_right(arena, pick(), pick(), &out);
        break;
      case 6:
        status = layouts.compose(arena, pick(), pick(), &out);
        break;
      case 7:
        status = layouts.least_solution(arena, pick(), pick(), &out);
        break;
      case 8:
        status = layouts.invert_and_compose(arena, pick(), pick(), side & 1, &out);
        break;
      case 9:
        status = layouts.pseudoinvert(arena, pick(), &out);
        break;
      case 10:
        status = layouts.concat(arena, side, pick(), pick(), &out);
        break;
      case 11:
        status = layouts.subspace(arena, input.byte() % 6, pick(), pick(), &out);
        break;
      case 12:
        status = shapes.transpose(arena, pick(), side, some, 2, &out);
        break;
      case 13:
        status = shapes.resize(arena, pick(), side, some[0], input.byte(), input.byte() % 3, &out);
        break;
      case 14:
        status = shapes.rename(arena, pick(), side, some, some + 1, 1, &out);
        break;
      case 15:
        status = shapes.sublayout(arena, pick(), some, 1, some + 1, 1, &out);
        break;
      case 16:
        status = shapes.quotient(arena, pick(), some, 2, &out);
        break;
      case 17:
        status = shapes.flatten(arena, pick(), side, &out);
        break;
      case 18: {
        const uint64_t shape[] = {uint64_t{1} << input.byte() % 8, input.word()};
        status = shapes.reshape_tensor(arena, pick(), shape, 2, &out);
        break;
      }
      case 19:
        status = shapes.repetitions(arena, pick(), pick(), &out);
        break;
      case 20: {
        uint64_t prefix = 0;
        status = shapes.identity_prefix(arena, pick(), some[0], some[1], input.word(), &prefix, &out);
        break;
      }
      case 21: {
        makes = false;
        sonde_plan_options_t options{};
        options.struct_size = sizeof(options);
        options.bits_per_element = 1u << input.byte() % 9;
        options.banks = input.byte();
        options.most_transpositions = input.byte() % 4;
        options.flags = input.byte() % 8;
        sonde_plan_t plan{};
        plan.struct_size = sizeof(plan);
        status = plans.plan(arena, pick(), pick(), &options, &plan);
        break;
      }
      case 22: {
        makes = false;
        sonde_bank_access_t access{};
        access.struct_size = sizeof(access);
        status = plans.bank_access(arena, pick(), some[0], 1u << input.byte() % 9, input.byte(), 0, &access);
        break;
      }
      default: {
        makes = false;
        const uint32_t order[] = {input.byte() % 3u, input.byte() % 3u};
        sonde_coalescing_t access{};
        access.struct_size = sizeof(access);
        status = plans.coalescing(arena, pick(), order, 2, 1u << input.byte() % 9, input.word(), &access);
      }
    }
    if (!makes) continue;
    if ((status == SONDE_OK) != (out != nullptr) || status == SONDE_E_INTERNAL) std::abort();
    if (out == nullptr) continue;
    sonde_layout_view_t view{};
    if (layouts.view(out, &view) != SONDE_OK || view.in_bits > 64 || view.out_bits > 64) std::abort();
    uint64_t reached = view.offset;
    for (uint32_t bit = 0; bit < view.in_bits; ++bit) reached |= view.columns[bit];
    if (view.out_bits < 64 && reached >> view.out_bits != 0) std::abort();
    pool.push_back(out);
  }
  if (layouts.close(arena) != SONDE_OK) std::abort();
  return 0;
}
