-- Asks the layout lint for its sites and publishes the kernels that use the most shared memory for conversions.
-- Grant it: scripts: [{path: example.lua, grant: [layout]}]
local layout = sonde.plugin("layout")

local kernels = sonde.table{
  name = "conversions",
  title = "Layout conversions by kernel",
  help = "From layout.each_site.",
  columns = {
    {name = "kernel", kind = "text", key = true, help = "function"},
    {name = "conversions", kind = "u64", unit = "1", help = "ttg.convert_layout operations"},
    {name = "shared", kind = "u64", unit = "bytes", sort = "down", help = "greatest shared memory of one of them"},
    {name = "conflicts", kind = "u64", unit = "wavefronts", help = "lost to bank conflicts by one warp"},
  },
}

-- Called after the last event.
function finish()
  local order, sums = {}, {}
  layout.each_site(function(kernel, file, line, operation, plan, shared, conflicts, findings)
    if operation ~= "ttg.convert_layout" then return end
    local sum = sums[kernel]
    if not sum then
      sum = {count = 0, shared = 0, conflicts = 0}
      sums[kernel] = sum
      order[#order + 1] = kernel
    end
    sum.count = sum.count + 1
    sum.shared = math.max(sum.shared, shared)
    sum.conflicts = sum.conflicts + conflicts
  end)
  for _, kernel in ipairs(order) do
    local sum = sums[kernel]
    kernels:add{kernel, sum.count, sum.shared, sum.conflicts}
  end
  sonde.finding{
    rule = "example.summary",
    severity = "note",
    verdict = "ok",
    message = string.format("%d sites, %d without a plan, %d parts could not be read.", layout.sites(),
                            layout.unsupported(), layout.unparsed()),
  }
end
