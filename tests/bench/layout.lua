-- What operations on layouts cost from Lua, in ns; the layouts are those of layout.cpp.
--
--   LUA_CPATH='<prefix>/lib/sonde/lua/5.4/?.so' lua5.4 layout.lua [ROUNDS]
local layout = require("sonde").layout
local rounds = tonumber(arg and arg[1]) or 11

-- Element bits dealt to in dims, the lowest of dim1 first.
local function tile(rows, columns, deal)
  local bases = {register = {}, lane = {}, warp = {}}
  local at = 0
  for _, part in ipairs(deal) do
    for _ = 1, part[2] do
      table.insert(bases[part[1]], at < columns and {0, 1 << at} or {1 << (at - columns), 0})
      at = at + 1
    end
  end
  return layout.make{
    {"register", bases.register}, {"lane", bases.lane}, {"warp", bases.warp},
    out = {{"dim0", 1 << rows}, {"dim1", 1 << columns}},
  }
end

local function memory(rows, columns)
  local bases = {}
  for bit = 0, columns - 1 do bases[#bases + 1] = {0, 1 << bit} end
  for bit = 0, rows - 1 do
    local mixed = columns // 2 + bit
    bases[#bases + 1] = {1 << bit, mixed < columns and 1 << mixed or 0}
  end
  return layout.make{{"offset", bases}, out = {{"dim0", 1 << rows}, {"dim1", 1 << columns}}}
end

local function median_ns(body)
  local times = {}
  local batch = 1
  for _ = 1, rounds do
    local spent
    repeat
      local begin = os.clock()
      for _ = 1, batch do body() end
      spent = os.clock() - begin
      if spent < 0.002 then batch = batch * 2 end
    until spent >= 0.002
    times[#times + 1] = spent / batch * 1e9
  end
  table.sort(times)
  return times[rounds // 2 + 1]
end

local rows = {}
for _, bits in ipairs{8, 14, 20, 40} do
  local columns = bits // 2
  local warps = bits > 8 and 2 or 1
  local registers = bits - 5 - warps
  local wide = columns > 3 and columns - 3 or 0
  local mma = tile(bits - columns, columns,
    {{"register", 1}, {"lane", 2}, {"register", wide}, {"lane", 3}, {"warp", warps}, {"register", registers - 1 - wide}})
  local swizzled = memory(bits - columns, columns)
  local to_memory = mma:invert_and_compose(swizzled)
  local order = {"dim1", "dim0"}
  local some_ins, some_outs = {"register", "lane"}, {"dim1"}
  local function row(name, body) rows[#rows + 1] = {name .. ", " .. bits .. " bits", body} end
  row("product", function() return layout.identity(2, "register", "dim1") * mma end)
  row("compose", function() return to_memory:compose(swizzled) end)
  row("invert", function() return swizzled:invert() end)
  row("pseudoinvert", function() return mma:pseudoinvert() end)
  row("invert and compose", function() return mma:invert_and_compose(swizzled) end)
  row("transpose", function() return mma:transpose("out", order) end)
  row("flatten", function() return mma:flatten("out") end)
  row("sublayout", function() return mma:sublayout(some_ins, some_outs) end)
  row("equality", function() return mma == mma:flatten("in") end)
  row("apply one", function() return mma(1, 9, 1) end)
  row("apply one, flattened", function() return mma:at(25) end)
  if bits >= 14 then row("apply 2^14 points", function() return mma:table(0, 1 << 14) end) end
end
for _, row in ipairs(rows) do print(string.format("%-44s %10.1f", row[1], median_ns(row[2]))) end
