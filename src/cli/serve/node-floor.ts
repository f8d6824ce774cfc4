/** The releases of 24 March 2026, by line. Others can crash older ones remotely (CVE-2026-21710, CVE-2026-21637, CVE-2026-21717). */
const FLOORS: Readonly<Record<number, readonly [minor: number, patch: number]>> = {
  20: [20, 2],
  22: [22, 2],
  24: [14, 1],
  25: [8, 2],
}

/** Whether others can remotely crash a server on this release of Node. */
export function isBelowFloor(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const floor = FLOORS[major]
  if (floor === undefined) return major < 25
  return minor < floor[0] || (minor === floor[0] && patch < floor[1])
}
