-- Top kernels by time: calls, total, mean, and share of the time that all kernels took together.
--
--   sonde replay CAPTURE -s top_kernels.lua
--   scripts: [{path: top_kernels.lua, options: {rows: 10}}]
local rows = sonde.options.rows or 20

-- Reductions are compiled: the script runs once for each batch, not for each kernel.
local groups = sonde.groups("name", "duration", "sonde.device.kernel")
local repaired = 0

sonde.subscribe{space = "sonde.device", types = {"kernel"}, on_batch = function(batch)
  groups:add(batch)
  repaired = repaired + batch.repairs
end}

function finish()
  local total = 0
  for _, kernel in ipairs(groups:rows()) do total = total + kernel.sum end

  local top = sonde.table{
    name = "top_kernels", title = "Top kernels by time", rows = rows,
    columns = {
      {name = "kernel", kind = "text", key = true, help = "name as the runtime gives it"},
      {name = "calls", kind = "i64", unit = "1"},
      {name = "time", kind = "i64", unit = "ns", sort = "down", help = "sum of durations"},
      {name = "mean", kind = "f64", unit = "ns"},
      {name = "share", kind = "f64", unit = "%", help = "of the time of all kernels"},
    },
  }
  for _, kernel in ipairs(groups:top(rows)) do
    local share = total > 0 and 100 * kernel.sum / total or nil
    top:add{kernel = kernel.key, calls = kernel.count, time = kernel.sum, mean = kernel.mean, share = share}
  end

  if #groups == 0 then
    sonde.finding{rule = "top_kernels.no_kernels", severity = "note", verdict = "unsupported",
                  message = "The capture holds no kernel.", reason = "no record of sonde.device.kernel"}
  elseif repaired > 0 then
    sonde.finding{rule = "top_kernels.repaired", severity = "note", message = "Some records had no usable time.",
                  evidence = {{name = "records", value = repaired, unit = "1"}}}
  end
end
