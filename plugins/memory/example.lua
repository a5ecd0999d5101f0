-- Asks the memory analysis for its numbers and publishes a table of its own: the patterns of both levels in one row each.
-- Grant it: scripts: [{path: example.lua, grant: [memory]}]
local memory = sonde.plugin("memory")

local patterns = {
  "early_allocation", "late_deallocation", "redundant_allocation", "unused_allocation", "leak", "temporary_idleness",
  "dead_write", "over_allocation", "non_uniform_access", "structured_access",
}

local summary = sonde.table{
  name = "patterns_by_level",
  title = "Patterns of allocations and tensors",
  help = "From memory.pattern_count and memory.pattern_waste: all devices and processes together.",
  columns = {
    {name = "pattern", kind = "text", key = true, help = "see the README of the memory analysis"},
    {name = "allocations", kind = "u64", unit = "1", help = "that show it"},
    {name = "tensors", kind = "u64", unit = "1", help = "that show it"},
    {name = "wasted", kind = "f64", unit = "bytes*s", sort = "down", help = "of allocations, what mending it frees"},
  },
}

local ALLOCATION, TENSOR = 0, 1

-- Called after the last event.
function finish()
  for _, pattern in ipairs(patterns) do
    summary:add{pattern, memory.pattern_count(ALLOCATION, pattern), memory.pattern_count(TENSOR, pattern),
                memory.pattern_waste(ALLOCATION, pattern)}
  end
  local worst = "none"
  memory.worst_objects(ALLOCATION, 1, function(name, bytes, wasted, found)
    if found ~= "" then worst = string.format("%s (%d bytes: %s)", name, bytes, found) end
  end)
  local peak, needed = memory.peak_bytes(ALLOCATION), memory.needed_peak_bytes(ALLOCATION)
  sonde.finding{
    rule = "example.peak",
    severity = "note",
    verdict = "ok",
    message = string.format("The peak is %d bytes; %d would do. Worst object: %s.", peak, needed, worst),
    evidence = {
      {name = "peak", unit = "bytes", value = peak},
      {name = "needed", unit = "bytes", value = needed},
      {name = "unmatched_frees", unit = "1", value = memory.unmatched_frees()},
    },
  }
end
