-- sonde.layout, run by layout_test.cpp in the script host and in the stock interpreter; `sonde` is a global in the first
-- and required in the second.
local sonde = sonde or require "sonde"
local layout = sonde.layout

local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error where one was expected: " .. part)
  assert(tostring(message):find(part, 1, true), tostring(message) .. " does not say " .. part)
end

-- The tile of the paper's first figure: register 1 of lane 9 holds (2, 3).
local tile = layout.make{
  {"register", {{0, 1}, {1, 0}}}, {"lane", {{0, 2}, {0, 4}, {0, 8}, {2, 0}, {4, 0}}}, {"warp", {{8, 0}}},
  out = {"dim0", "dim1"},
}
local i, j = tile(1, 9, 0)
assert(i == 2 and j == 3)
local point = tile:apply{register = 1, lane = 9}
assert(point.dim0 == 2 and point.dim1 == 3)
assert(tile:rank() == 8 and tile:is_invertible() and tile:is_permutation())
assert(tile:ins()[2][1] == "lane" and tile:ins()[2][2] == 32 and tile:outs()[1][2] == 16)
assert(tile:bases("lane")[4][1] == 2)
assert(tostring(tile):find("register=1 -> (0, 1)", 1, true))

-- The inverse undoes it; everything comes back through JSON.
local back = tile:invert()
assert(tile:compose(back):at(77) == 77)
assert(layout.from_json(tile:to_json()) == tile)
assert(tile ~= back)
local values = tile:table()
assert(#values == 256 and values[1 + 77] == tile:at(77))

-- Products and quotients.
local small = layout.identity(4, "in", "out")
local both = small * layout.identity(8, "in", "out")
assert(both == layout.identity(32, "in", "out"))
assert(both:divide_left(small) == layout.identity(8, "in", "out"))
assert(both:divide_left(layout.strided(2, 2, "in", "out")) == nil)
assert(layout.zeros(4, "in", "out", 2):rank() == 0)

-- Dims.
assert(tile:transpose("out", {"dim1", "dim0"}):equal(tile, "as_maps"))
assert(tile:flatten("out"):outs()[1][2] == 256)
assert(tile:reshape("in", {{"a", 16}, {"b", 16}}):ins()[2][1] == "b")
assert(tile:sublayout({"lane"}, {"dim0"}):rank() == 2)
assert(tile:rename("out", {dim0 = "dim1", dim1 = "dim0"}):outs()[1][1] == "dim1")
assert(tile:resize("out", "dim1", 2, "modulo"):bases("register")[1][2] == 1)
assert(tile:free_masks().lane == 0)
assert(tile:contiguous("dim1") == 16)

-- Encodings and plans: 16x16 elements of 16 bits from blocked to the result of mma.sync.
local module = "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>"
local blocked = layout.encoding(
  "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 2], warpsPerCTA = [1, 1], order = [1, 0]}>")
assert(blocked:kind() == "blocked")
local source = blocked:layout{16, 16}
local target = layout.encoding("#mma", module):layout{16, 16}
assert(target:bases("register")[1][2] == 1 and target:bases("register")[2][1] == 8)
local plan = layout.plan(source, target, 16)
assert(plan.kind == "shared memory" and plan.shared_bytes == 512, plan.kind)
assert(plan.store.conflicts == 0 and plan.load.conflicts == 0)
assert(layout.plan(source, source, 16).kind == "no-op")
local memory, read, write = layout.swizzle(source, target, 16)
assert(memory:is_invertible() and read == 0 and write == 0)
assert(layout.vector_width(source, {1, 0}, 16) == 8)
-- 32 lanes of 16 bytes each in rows of 32 bytes: 512 bytes in 16 sectors.
local request = layout.coalescing(source, {1, 0}, 16)
assert(request.sectors == 16 and request.bytes == 512, request.sectors)
local holders = layout.owners(source, {3, 9})
-- Two lanes a row: row 3, second half of the columns, its second element.
assert(#holders == 1 and holders[1].lane == 7 and holders[1].register == 1)

-- Searches, and CuTe's layouts as text.
local wanted = layout.find_registers{shape = {64, 64}, bits = 16, vector_bits = 128}
assert(layout.vector_width(wanted, {1, 0}, 16) == 8)
local none, reason = layout.find_registers{shape = {64, 64}, bits = 16, vector_bits = 1024, registers = 8}
assert(none == nil and #reason > 0)
assert(layout.find_memory(source, target, 16):is_invertible())
local cute = layout.cute
assert(cute.compose("(6,2):(8,2)", "(4,3):(3,1)") == "((2,2),3):((24,2),8)")
assert(cute.complement("4:2", 24) == "(2,3):(1,8)")
assert(cute.divide("(4,2,3):(2,1,8)", "4:2") == "((2,2),(2,3)):((4,1),(2,8))")
assert(cute.product("(2,2):(4,1)", "6:1") == "((2,2),(2,3)):((4,1),(2,8))")
assert(cute.coalesce("(2,(1,6)):(1,(6,2))") == "12:1")
assert(cute.apply("(4,2):(1,10)", 6) == 12)
none, reason = cute.compose("(6,2):(1,7)", "(3,2):(2,3)")
assert(none == nil and #reason > 0)
local row = cute.to_linear("((4,8),(2,2)):((32,1),(16,8))", {{"lane", 32}, {"value", 4}}, {{"dim0", 16}, {"dim1", 8}})
assert(cute.from_linear(row) == "((4,8),(2,2)):((32,1),(16,8))")

-- Sizes that are no powers of two.
local thirds = layout.modular{{"register", 3, {1, 2}}, {"lane", 32, {3, 6, 12, 24, 48}}, out = {{"dim0", 96}}}
assert(thirds(2, 5) == 17)
assert(thirds(thirds:solve(77)) == 77)
none, reason = thirds:invert()
assert(none == nil and #reason > 0)
assert(thirds == layout.modular{{"register", 3, {{1}, {2}}}, {"lane", 32, {3, 6, 12, 24, 48}}, out = {{"dim0", 96}}})
fails("needs 2 bases", layout.modular, {{"register", 3, {1}}, out = {{"dim0", 3}}})
fails("is not below 3", thirds, 3, 0)

-- What is wrong is said.
fails("power of two", layout.identity, 3, "in", "out")
fails("does not fit", tile.compose, tile, tile)
local half = layout.make{{"a", {1, 2}}, out = {{"o", 8}}}
fails("2^2 of its 2^3", half.pseudoinvert, half)
fails("one value for each in dim", tile, 1, 2)
fails("a dim is named", tile.apply, tile, {register = 1, nowhere = 2})
fails("at byte", layout.encoding, "#ttg.blocked<{sizePerThread = }>")
fails("sonde.layout expected", tile.compose, tile, blocked)
fails("more than 64", layout.make, {{"a", {}}, {"b", {}}, out = setmetatable({}, {__len = function() return 65 end})})

-- Layouts live as long as their objects.
local kept = {}
for n = 1, 2000 do kept[n % 50 + 1] = tile:compose(back) end
collectgarbage()
assert(kept[7]:at(200) == 200)

return true
