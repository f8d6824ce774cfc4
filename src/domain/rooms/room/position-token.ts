/**
 * A place between two events of a room's timeline: after the event at `pos`, before the next.
 * Paginating backwards from it gives the event at `pos` first, forwards the one after it; so the `prev_batch` of a
 * timeline that starts with event `e` is `encodePosition(e.pos - 1)`.
 */
export function encodePosition(pos: number): string {
  return `t${pos}`
}

const POSITION = /^t(-?\d{1,16})$/

/** Reads a pagination token. Undefined if this server cannot have issued it. */
export function decodePosition(token: string): { readonly pos: number } | { readonly syncToken: string } | undefined {
  if (token.startsWith('s')) return { syncToken: token }
  const match = POSITION.exec(token)
  return match ? { pos: Number(match[1]) } : undefined
}
