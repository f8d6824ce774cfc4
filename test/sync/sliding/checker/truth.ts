import { inRoom, type Person } from '../../../rooms/people.ts'
import type { Json } from '../../../support/api.ts'
import type { WorldRoom } from './world.ts'

/** What a user may see of a room, by the endpoints that page through it. */
export interface Truth {
  /** Event ids, oldest first. */
  readonly ids: readonly string[]
  /** Event ids by type and key. */
  readonly state: ReadonlyMap<string, string>
  readonly joined: number
  readonly invited: number
  readonly name: string | undefined
}

const PAGE = 200

export function createTruth(): (
  person: Person,
  room: Pick<WorldRoom, 'id' | 'lastAt' | 'standings'>,
) => Promise<Truth> {
  const known = new Map<string, { readonly at: string; readonly truth: Promise<Truth> }>()
  return (person, room) => {
    const key = `${person.userId} ${room.id}`
    const at = `${room.lastAt} ${JSON.stringify(room.standings.get(person.userId))}`
    const found = known.get(key)
    if (found?.at === at) return found.truth
    const truth = readTruth(person, room.id)
    known.set(key, { at, truth })
    return truth
  }
}

async function readTruth(person: Person, room: string): Promise<Truth> {
  const ids: string[] = []
  let from = ''
  for (;;) {
    const { chunk, end } = await person.call('GET', inRoom(room, `/messages?dir=f&limit=${PAGE}${from}`))
    ids.push(...chunk.map((event: Json) => event.event_id))
    if (end === undefined || chunk.length === 0) break
    from = `&from=${encodeURIComponent(end)}`
  }
  const events: Json[] = await person.call('GET', inRoom(room, '/state'))
  const state = new Map(events.map(({ type, state_key: key, event_id: id }) => [`${type}|${key}`, id as string]))
  const members = (membership: string) =>
    events.filter(({ type, content }) => type === 'm.room.member' && content.membership === membership).length
  const name = events.find(({ type }) => type === 'm.room.name')?.content.name
  return { ids, state, joined: members('join'), invited: members('invite'), name: name || undefined }
}
