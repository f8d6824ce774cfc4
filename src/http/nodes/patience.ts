/** Syncs, of which clients repeat those that were not answered. */
export const SYNC = /^[^?]*\/(?:sync|events)(?:\?|$)/
const PATIENCE = /([?&]timeout=)\d+/

/** The target and the body of a sync that waits only so long for news. */
export function waitingFor(
  ms: number,
  url: string,
  body: Buffer | undefined,
): readonly [url: string, body: Buffer | undefined] {
  return [url.replace(PATIENCE, (_all, name: string) => `${name}${ms}`), bodyWaiting(ms, body)]
}

/** Sliding sync also says in its body how long it waits. */
function bodyWaiting(ms: number, body: Buffer | undefined): Buffer | undefined {
  try {
    const asked: unknown = JSON.parse(`${body}`)
    if (typeof asked === 'object' && asked !== null && 'timeout' in asked)
      return Buffer.from(JSON.stringify({ ...asked, timeout: ms }))
  } catch {
    // The node says what is wrong with it.
  }
  return body
}
