-- Sends text messages. Arguments: a file with one "token room" per sender, a word that makes transaction ids new.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")
local before, after, word = {}, {}, ""
local count, sent = 0, 0
local body = '{"msgtype":"m.text","body":"The fire is lit and the kettle is on; come over when you are done."}'

function init(args)
  word = args[2]
  for line in io.lines(args[1]) do
    local token, room = line:match("^(%S+) (%S+)$")
    count = count + 1
    before[count] = "PUT " .. wrk.path .. "/rooms/" .. room .. "/send/m.room.message/" .. word .. "-"
    after[count] = " HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port
      .. "\r\nAuthorization: Bearer " .. token
      .. "\r\nContent-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
  end
end

function request()
  sent = sent + 1
  local sender = sent % count + 1
  return before[sender] .. sent .. after[sender]
end
