-- Random patterns on random subjects: prints what find, match, gmatch and gsub make of them. Runs alike in the stock
-- interpreter, whose string library is the standard here, and in the sandbox, which has a matcher of its own.
local seed = 12345
local function random(n)  -- 1 to n; a generator that is the same everywhere
  seed = (seed * 1103515245 + 12345) % 2147483648
  return (seed >> 8) % n + 1
end
local function pick(list) return list[random(#list)] end

local letters = {"a", "b", "c", "1", " ", "-", "]", "(", "\0", "\200"}
local items = {"a", "b", ".", "%a", "%d", "%s", "%W", "[ab]", "[^a]", "[%a1-3]", "[]-]", "[a-]", "%-", "%(", "%1", "%b()",
  "%f[%a]", "%f[^b]", "(", ")", "()", "$", "^", "[", "%", "\0", "\200"}
local suffixes = {"", "", "", "*", "+", "-", "?"}

local function text(make, most)
  local parts = {}
  for _ = 1, random(most) - 1 do parts[#parts + 1] = make() end
  return table.concat(parts)
end
-- The words of an error differ, so the fact alone counts.
local function shown(ok, ...)
  if not ok then return "error" end
  local values = {...}
  for index = 1, select("#", ...) do values[index] = tostring(values[index]) end
  return table.concat(values, "|")
end

local lines = {}
for _ = 1, 4000 do
  local subject = text(function() return pick(letters) end, 12)
  local pattern = text(function() return pick(items) .. pick(suffixes) end, 5)
  local start = random(9) - 5
  local collected = {}
  local all = pcall(function()
    for a, b in subject:gmatch(pattern) do collected[#collected + 1] = tostring(a) .. "," .. tostring(b) end
  end)
  lines[#lines + 1] = table.concat({
    shown(pcall(string.find, subject, pattern, start)), shown(pcall(string.match, subject, pattern, start)),
    shown(pcall(string.gsub, subject, pattern, "<%0>")), shown(pcall(string.gsub, subject, pattern, "%1", 2)),
    all and table.concat(collected, ";") or "error"}, " / ")
end
for index, line in ipairs(lines) do lines[index] = line:gsub("[^ -~]", function(c) return ("\\%d"):format(c:byte()) end) end

if sonde then
  local t = sonde.table{name = "lines", columns = {{name = "line", kind = "text"}}}
  for _, line in ipairs(lines) do t:add{line} end
else
  for _, line in ipairs(lines) do print(line) end
end
