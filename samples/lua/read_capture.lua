-- Reads a capture in the stock interpreter, without the `sonde` command:
--
--   LUA_CPATH=PREFIX/lib/sonde/lua/5.4/?.so lua5.4 read_capture.lua CAPTURE
local sonde = require "sonde"

local capture <close> = sonde.open(arg[1] or error("usage: read_capture.lua CAPTURE"))
for _, source in ipairs(capture:sources()) do
  print(("%s, process %d: %d records%s"):format(source.program, source.process, source.records,
    source.complete and "" or " (the process ended before the capture did)"))
end

-- Columns of whole batches, as in a hosted script.
local kernels, time = 0, 0
for batch in capture:batches{space = "sonde.device", types = {"kernel"}} do
  kernels = kernels + batch:count()
  time = time + batch:sum("duration")
end
print(("%d kernels, %.3f ms together"):format(kernels, time / 1e6))

-- Analyses and scripts on a replay, then their tables.
local here = arg[0]:match("^(.*/)") or ""
local run <close> = capture:replay{scripts = {{path = here .. "top_kernels.lua", options = {rows = 3}}}}
for _, row in ipairs(run:tables()["top_kernels.top_kernels"]) do
  print(("%6d x %-40s %10.1f us"):format(row.calls, row.kernel, row.time / 1e3))
end
for _, finding in ipairs(run:findings()) do print(finding.severity, finding.rule, finding.message) end
