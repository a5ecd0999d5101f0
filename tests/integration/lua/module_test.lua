-- lua5.4 module_test.lua CAPTURE: what module_test.cpp recorded, read through require "sonde".
local sonde = require "sonde"

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(pattern, 1, true), tostring(message))
end

fails("/nowhere", sonde.open, "/nowhere")
assert(sonde.u64.hex(-1) == "0xffffffffffffffff")
assert(sonde.version:match("^%d+%.%d+%.%d+$"))

local capture <close> = sonde.open(arg[1])
local sources = capture:sources()
assert(#sources == 1 and sources[1].complete and sources[1].process > 1 and sources[1].records >= 1100)
assert(sources[1].damage == "" and sources[1].start_ns <= sources[1].stop_ns)

-- Batches with the same columns as in a hosted script.
local kernels, duration, groups, last = 0, 0, nil, nil
for batch in capture:batches{space = "sonde.device", types = {"kernel"}} do
  kernels = kernels + batch:count()
  duration = duration + batch:sum("duration")
  groups = batch:group("name", "grid_x")
  last = batch
end
assert(kernels == 1000 and duration > 0)
fails("the batch is over", last.sum, last, "duration")
fails("the session is closed", groups.rows, groups)

-- A loop that ends early leaves nothing behind.
for round = 1, 3 do
  for batch in capture:batches{space = "sonde.device"} do
    assert(batch:sum("bytes", "copy") >= 0)
    local top = batch:group("name", "grid_x", "kernel"):top(1)
    assert(#top == 0 or top[1].key == "gemm")
    for row in batch:rows("copy") do assert(row.kind == "host_to_device") end
    break
  end
end
for batch in capture:batches{space = "sonde.device"} do
  local ok = pcall(error, "an error inside the loop")
  assert(not ok)
end
fails("inside", function()
  for batch in capture:batches{space = "sonde.device"} do error("inside the loop") end
end)
fails("no type", capture.batches, capture, {space = "sonde.device", types = {"kernal"}})
fails("sonde.nothing", capture.batches, capture, {space = "sonde.nothing"})

-- Scripts under a replay.
local function replay(text, options)
  local script = options or {}
  script.text, script.name = text, "script"
  return capture:replay{analyses = {lua = script}}
end
local run = replay([[
local groups = sonde.groups("name", "grid_x", "sonde.device.kernel")
sonde.subscribe{space="sonde.device", types={"kernel"}, on_batch=function(batch) groups:add(batch) end}
function finish()
  local t = sonde.table{name="kernels", columns={{name="kernel", kind="text"}, {name="count"}, {name="sum"}}}
  for _, row in ipairs(groups:top(10, "count")) do t:add{row.key, row.count, row.sum} end
end]])
local t = run:tables()["script.kernels"]
assert(#t == 2 and t[1].kernel == "gemm" and t[1].count == 750 and t[2].count == 250)
assert(t[1].sum + t[2].sum == 999 * 1000 // 2)
assert(#run:findings() == 0 and #run:losses() == 0)
assert(run:report("json"):find('"script.kernels"', 1, true))
fails("rtf", run.report, run, "rtf")
run:close()
fails("closed", run.tables, run)
fails("closed", function() return t[1] end)

-- The host's limits hold here too, where the interpreter's own functions stand in for those the plugin was built with.
local function failure(text, options)
  local run <close> = replay(text, options)
  local findings = run:findings()
  assert(#findings == 1, #findings)
  assert(findings[1].rule == "lua.script_failed" and findings[1].verdict == "unsupported")
  return findings[1].message
end
local on_batch = "sonde.subscribe{space='sonde.device', on_batch=function(batch) %s end}"
assert(failure(on_batch:format("error('went wrong')")):find("script:1: went wrong", 1, true))
assert(failure(on_batch:format("while true do end"), {deadline = "100ms"}):find("deadline"))
assert(failure(on_batch:format("while true do pcall(function() while true do end end) end"), {deadline = "100ms"}):find("deadline"))
assert(failure(on_batch:format("coroutine.wrap(function() while true do end end)()"), {deadline = "100ms"}):find("deadline"))
assert(failure(on_batch:format("batch:sum('nothing', 'copy')")):find("no field"))
assert(failure("function finish() local t = {} while true do t[#t + 1] = {} end end", {memory = "4Mi"}):find("not enough memory"))
assert(failure("local x ="):find("unexpected symbol"))
fails("no_such_plugin", capture.replay, capture, {analyses = {no_such_plugin = {}}})
fails("unknown", capture.replay, capture, {analysis = {}})

capture:close()
fails("the capture is closed", capture.sources, capture)
