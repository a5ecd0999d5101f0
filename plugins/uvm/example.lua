-- Asks what the plan would save on devices with less memory, and publishes it as a table.
-- Grant it: scripts: [{path: example.lua, grant: [uvm]}]
local uvm = sonde.plugin("uvm")

local what_if = sonde.table{
  name = "smaller_devices",
  title = "Simulated time on smaller devices",
  help = "From uvm.predict_capacity. Less memory than is touched is extrapolation.",
  columns = {
    {name = "capacity", kind = "u64", unit = "bytes", key = true, help = "memory of the device"},
    {name = "case", kind = "text", key = true, help = "no prefetching, or a plan"},
    {name = "time", kind = "i64", unit = "ns", help = "simulated"},
    {name = "extrapolated", kind = "bool", help = "the device holds less than what is touched"},
  },
}

-- Called after the last event; analyses have finished then.
function finish()
  local found, touched = pcall(uvm.touched_bytes)
  if not found then return end  -- no touches in the capture: the analysis has said why
  for _, share in ipairs{1.0, 0.5, 0.25} do
    local capacity = math.max(math.floor(touched * share), 2 << 20)
    uvm.predict_capacity(capacity, function(case, time, extrapolated)
      what_if:add{capacity, case, time, extrapolated}
    end)
  end
end
