const MINUTE_MS = 60_000

/** Reports the first occurrence at once, and then once a minute the number of occurrences since the last report. */
export function onceAMinute(tell: (times: number) => void): () => void {
  let times = 0
  let timer: NodeJS.Timeout | undefined

  function due(): void {
    timer = undefined
    if (times > 0) tellNow()
  }

  function tellNow(): void {
    const count = times
    times = 0
    timer = setTimeout(due, MINUTE_MS).unref()
    tell(count)
  }

  return () => {
    times++
    if (timer === undefined) tellNow()
  }
}
