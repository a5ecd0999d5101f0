// Divisions, products, slices and tiles of CuTe layouts.
//
// All are compositions and complements (cute_algebra.h) whose modes are put in another order, so their results are
// right where those succeed, and they fail with their reasons where those do not.
#pragma once

#include "layout/cute_algebra.h"

namespace sonde::layout {

// compose(layout, (tile, complement(tile, size))): the elements of a tile, then the tiles. By mode for a list.
//   (4,2,3):(2,1,8) by 4:2 = ((2,2),(2,3)):((4,1),(2,8))
// Where the tile does not divide the layout, the last tile goes on past it, as the layout does.
const CuteLayout *logical_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
// The same with the modes gathered: ((tile modes), (rest modes)).
const CuteLayout *zipped_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
// ((tile modes), rest, rest, ...) and (tile, tile, ..., rest, rest, ...).
const CuteLayout *tiled_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
const CuteLayout *flat_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);

// (layout, compose(complement(layout, size * cosize(tiler)), tiler)): the layout, repeated as the tiler says.
//   (2,2):(4,1) by 6:1 = ((2,2),(2,3)):((4,1),(2,8))
const CuteLayout *logical_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
const CuteLayout *zipped_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
const CuteLayout *tiled_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
const CuteLayout *flat_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler);
// Mode by mode (block mode, tiler mode), or the other way round: blocks side by side, or elements dealt out in turn.
//   (2,5):(5,1), (3,4):(1,3):  blocked ((2,3),(5,4)):((5,10),(1,30))   raked ((3,2),(4,5)):((10,5),(30,1))
const CuteLayout *blocked_product(Arena &arena, const CuteLayout &block, const CuteLayout &tiler);
const CuteLayout *raked_product(Arena &arena, const CuteLayout &block, const CuteLayout &tiler);
// The block repeated over the shape, whose modes are multiples of the block's, first the mode that `order` ranks
// first; empty: in order. Each mode of the result is coalesced.
const CuteLayout *tile_to_shape(Arena &arena, const CuteLayout &block, const CuteTuple &shape,
                                std::span<const uint32_t> order = {});

// The layout of elements `factor` times as large: in each leaf the coordinates that lie in one new element become one,
// and its index is theirs divided by `factor`, rounded down: (8,4):(1,16) by 4 = (2,4):(1,4). kNoSolution when a leaf
// straddles new elements, or leaves overlap within one.
const CuteLayout *upcast(Arena &arena, const CuteLayout &layout, int64_t factor);
// Of elements `factor` times as small: the mode of stride 1 becomes longer. kNoSolution without just one such mode.
const CuteLayout *downcast(Arena &arena, const CuteLayout &layout, int64_t factor);
const CuteLayout *recast(Arena &arena, const CuteLayout &layout, uint32_t old_bits, uint32_t new_bits);

// A part of a layout: where it begins, and how it goes on.
struct CuteSlice {
  const CuteLayout *layout = nullptr;  // nullptr: the operation failed
  int64_t offset = 0;
};
// The modes for which the coordinate says `_`, in one flat list, at the offset of the others.
CuteSlice slice(Arena &arena, const CuteLayout &layout, const CuteTuple &coordinate);
// The tile with this coordinate among the tiles of zipped_divide.
CuteSlice local_tile(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler, const CuteTuple &coordinate);
// What the thread of this index in the layout of threads holds when the threads are laid over each tile of their
// shape: one element of each tile.
CuteSlice local_partition(Arena &arena, const CuteLayout &layout, const CuteLayout &threads, int64_t thread);

}  // namespace sonde::layout
