-- Prints the figures of a run as one line of JSON.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"rejected":%d,"broken":%d}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(50.0) / 1e3,
    latency:percentile(99.0) / 1e3,
    errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
