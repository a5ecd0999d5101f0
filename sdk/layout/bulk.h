// A layout applied to many indices.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// out[i] = L(in[i]) for flattened indices whose bits past in_bits are 0; `out` may be `in`.
void apply_many(const Layout &layout, std::span<const uint64_t> in, uint64_t *out);

// out[i] = L(first + i). The range lies inside the layout's inputs; the narrow form needs out_bits <= 32.
void fill_table(const Layout &layout, uint64_t first, uint64_t count, uint64_t *out);
void fill_table(const Layout &layout, uint64_t first, uint64_t count, uint32_t *out);

}  // namespace sonde::layout
