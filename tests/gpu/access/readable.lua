-- Reads all that the port of device accesses hands over, as a live analysis does, and lists the launches with their stamps.
--
--   scripts: [{path: readable.lua}]
local launches = {}
local totals = {}

-- Every record of every batch is looked at; what it carries is counted.
local function take(kind, count)
  sonde.subscribe{space = "sonde.access", types = {kind}, on_batch = function(batch)
    local sum = totals[kind] or {records = 0, entries = 0, bytes = 0}
    sum.records = sum.records + batch:count(kind)
    sum.entries = sum.entries + (count and batch:sum(count, kind) or 0)
    sum.bytes = sum.bytes + batch.bytes
    totals[kind] = sum
  end}
end

sonde.subscribe{space = "sonde.access", types = {"launch"}, on_batch = function(batch)
  for row in batch:rows("launch") do
    launches[#launches + 1] = {name = row.name, time = row.time, readable = row.readable, dropped = row.dropped,
                               accesses = row.accesses, flags = row.flags}
  end
end}
if sonde.options.take then take(sonde.options.take, sonde.options.count) end

function finish()
  local list = sonde.table{name = "launches", rows = 1000000, columns = {
    {name = "name", kind = "text"}, {name = "time", kind = "u64"}, {name = "readable", kind = "u64"},
    {name = "dropped", kind = "u64"}, {name = "accesses", kind = "u64"}, {name = "flags", kind = "text"}}}
  for _, launch in ipairs(launches) do
    launch.flags = tostring(launch.flags)
    list:add(launch)
  end
  local sums = sonde.table{name = "totals", columns = {
    {name = "kind", kind = "text"}, {name = "records", kind = "i64"}, {name = "entries", kind = "i64"},
    {name = "bytes", kind = "i64"}}}
  for kind, sum in pairs(totals) do
    sums:add{kind = kind, records = sum.records, entries = sum.entries, bytes = sum.bytes}
  end
end
