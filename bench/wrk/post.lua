-- Posts again and again. Arguments: a file with one "token path body" per client.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")
local requests = {}
local count, sent = 0, 0

function init(args)
  for line in io.lines(args[1]) do
    local token, path, body = line:match("^(%S+) (%S+) (.+)$")
    count = count + 1
    requests[count] = "POST " .. path .. " HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port
      .. "\r\nAuthorization: Bearer " .. token .. "\r\nContent-Type: application/json\r\nContent-Length: " .. #body
      .. "\r\n\r\n" .. body
  end
end

function request()
  sent = sent + 1
  return requests[sent % count + 1]
end
