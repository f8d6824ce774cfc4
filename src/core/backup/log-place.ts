/**
 * The log of a Postgres is a row of pieces of 16 MiB. Eight hex digits of a piece's name say which branch of the log it is on, the other
 * sixteen which place it has. A Postgres that went back to a moment begins a branch, with a higher number, at the place of that moment.
 */
const SEGMENT = /^[0-9A-F]{24}$/
/** Pieces that the first eight of the sixteen digits count once. */
const PIECES_EACH = 0x100

export const isSegment = (name: string): boolean => SEGMENT.test(name)

/** The place of a piece in the log, whichever branch it is on. Places sort as text. */
export const placeOf = (segment: string): string => segment.slice(8)

export const branchOf = (segment: string): string => segment.slice(0, 8)

/** The place after a place. */
export function placeAfter(place: string): string {
  const count = Number.parseInt(place.slice(0, 8), 16) * PIECES_EACH + Number.parseInt(place.slice(8), 16) + 1
  return hex(Math.floor(count / PIECES_EACH)) + hex(count % PIECES_EACH)
}

const hex = (number: number): string => number.toString(16).toUpperCase().padStart(8, '0')

/**
 * Why a log does not lead on from a copy of the files: the place of the first piece that is missing between the first piece of the copy and
 * the newest of all, along the newest branch; or that another branch begins before the copy. Undefined if it leads to its end.
 */
export function whyBroken(
  segments: readonly string[],
  first: string,
): { readonly missing: string } | 'left behind' | undefined {
  const names = segments.filter(isSegment).sort()
  // What older branches have after its end does not count any more.
  const end = names.at(-1)
  if (end === undefined) return undefined
  const newest = new Map<string, string>()
  for (const name of names) {
    const [place, branch] = [placeOf(name), branchOf(name)]
    if (place < placeOf(first) && branch > branchOf(first)) return 'left behind'
    // Sorted by branch: the newest stays.
    if (place >= placeOf(first) && place <= placeOf(end)) newest.set(place, branch)
  }
  let [expected, branch] = [placeOf(first), '']
  for (const [place, own] of [...newest].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (place !== expected || own < branch) return { missing: expected }
    branch = own
    expected = placeAfter(place)
  }
  return undefined
}
