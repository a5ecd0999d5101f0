-- The analysis of ../copy_sizes_c in Lua: how large the copies of a run are, by direction, in powers of two.
--
--   scripts: [{path: copy_sizes.lua, options: {threshold_bytes: 4Ki, share: 0.5}}]
local threshold = sonde.options.threshold_bytes or 4096
local share = sonde.options.share or 0.5
local directions = {"unknown", "host_to_device", "device_to_host", "device_to_device", "host_to_host", "peer_to_peer",
  "host_to_array", "array_to_host", "array_to_array", "array_to_device", "device_to_array"}
local buckets, copies, tiny = {}, 0, 0  -- buckets[direction][b]; 0 holds 0 bytes, b > 0 holds 2^(b-1) <= bytes < 2^b

sonde.subscribe{space = "sonde.device", types = {"copy"}, on_batch = function(batch)
  for copy in batch:rows() do
    local bucket = 0
    while bucket < 64 and copy.bytes >> bucket ~= 0 do bucket = bucket + 1 end
    local direction = math.type(copy.kind) and "unknown" or copy.kind
    buckets[direction] = buckets[direction] or {}
    local content = buckets[direction][bucket] or {copies = 0, bytes = 0}
    buckets[direction][bucket] = content
    content.copies, content.bytes, copies = content.copies + 1, content.bytes + copy.bytes, copies + 1
    if sonde.u64.less(copy.bytes, threshold) then tiny = tiny + 1 end
  end
end}

function finish()
  local sizes = sonde.table{name = "sizes", title = "Copy sizes", columns = {
    {name = "direction", kind = "text", key = true}, {name = "from", kind = "u64", unit = "bytes", key = true},
    {name = "to", kind = "u64", unit = "bytes"}, {name = "copies", kind = "u64", unit = "1"},
    {name = "bytes", kind = "u64", unit = "bytes"}}}
  for _, direction in ipairs(directions) do
    for bucket = 0, 64 do
      local content = (buckets[direction] or {})[bucket]
      local from = bucket > 0 and 1 << (bucket - 1) or 0
      if content then sizes:add{direction, from, bucket > 0 and from * 2 - 1 or 0, content.copies, content.bytes} end
    end
  end
  local part = copies > 0 and tiny / copies or 0
  sonde.finding{rule = "copy_sizes.tiny", severity = part > share and "warning" or "note",
    verdict = copies == 0 and "unsupported" or part > share and "violation" or "ok",
    reason = copies == 0 and "the capture holds no copy" or nil,
    message = copies == 0 and "Copy sizes were not judged." or part > share and "Most copies are tiny."
      or "Copies are not mostly tiny.",
    advice = "Gather small values into one buffer and copy that.", formula = "tiny / copies > share",
    evidence = {{name = "tiny_copies", unit = "1", value = tiny}, {name = "copies", unit = "1", value = copies},
      {name = "tiny_share", unit = "1", value = part}, {name = "threshold", unit = "bytes", value = threshold}}}
end
