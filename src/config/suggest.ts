/** The candidate nearest to a mistyped word, if one is near enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** The nearest of several dotted keys, by the whole key or by its last part. */
export function nearestKey(word: string, keys: readonly string[]): string | undefined {
  const whole = nearest(word, keys)
  if (whole !== undefined) return whole
  const lastPart = (key: string) => key.slice(key.lastIndexOf('.') + 1)
  const part = nearest(lastPart(word), new Set(keys.map(lastPart)))
  return keys.find((key) => lastPart(key) === part)
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = previous[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[right.length]!
}
