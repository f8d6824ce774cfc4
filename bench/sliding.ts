import { Pool } from 'undici'
import type { Account } from '../test/support/api.ts'

/** Sliding sync as today's phone clients ask for it. */
const SLIDING_PATH = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'

const REQUIRED_STATE = [
  ['m.room.create', ''],
  ['m.room.name', ''],
  ['m.room.topic', ''],
  ['m.room.avatar', ''],
  ['m.room.canonical_alias', ''],
  ['m.room.encryption', ''],
  ['m.room.join_rules', ''],
  ['m.room.history_visibility', ''],
  ['m.room.power_levels', ''],
  ['m.room.member', '$LAZY'],
  ['m.room.member', '$ME'],
  ['m.space.parent', '*'],
  ['m.space.child', '*'],
]

/** The room list: a window of the 20 newest rooms with the last event of each. */
export const SLIDING_BODY = JSON.stringify({
  conn_id: 'room-list',
  lists: {
    all_rooms: {
      ranges: [[0, 19]],
      timeline_limit: 1,
      required_state: REQUIRED_STATE,
      filters: { not_room_types: ['m.space'] },
    },
  },
  extensions: Object.fromEntries(
    ['to_device', 'e2ee', 'account_data', 'receipts', 'typing'].map((name) => [name, { enabled: true }]),
  ),
})

export function slidingPath({ pos, timeout = 0 }: { pos?: string; timeout?: number }): string {
  return `${SLIDING_PATH}?timeout=${timeout}${pos === undefined ? '' : `&pos=${encodeURIComponent(pos)}`}`
}

export interface SlidingAnswer {
  readonly milliseconds: number
  readonly bytes: number
  readonly pos: string
  readonly rooms: number
}

/** From the request to the last byte, on a connection of its own. */
export async function timedSliding(baseUrl: string, { token }: Pick<Account, 'token'>, pos?: string) {
  const pool = new Pool(baseUrl, { connections: 1, headersTimeout: 600_000, bodyTimeout: 600_000 })
  try {
    const begun = performance.now()
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: slidingPath(pos === undefined ? {} : { pos }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: SLIDING_BODY,
    })
    const text = await body.text()
    const milliseconds = performance.now() - begun
    if (statusCode !== 200) throw new Error(`sliding sync answered ${statusCode}: ${text.slice(0, 500)}`)
    const answer = JSON.parse(text) as { pos: string; rooms: object }
    return { milliseconds, bytes: text.length, pos: answer.pos, rooms: Object.keys(answer.rooms).length }
  } finally {
    await pool.close()
  }
}

/** The position from which a device has no news: it takes answers until one is empty. */
export async function settledPos(baseUrl: string, device: Pick<Account, 'token'>): Promise<string> {
  let { pos } = await timedSliding(baseUrl, device)
  for (let rounds = 0; rounds < 5; rounds += 1) {
    const next = await timedSliding(baseUrl, device, pos)
    if (next.pos === pos) return pos
    pos = next.pos
  }
  return pos
}
