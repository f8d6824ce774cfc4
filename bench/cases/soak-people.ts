import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  mapConcurrently,
  openApi,
  sendText,
  syncPath,
} from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import type { Target } from '../target.ts'

const PEOPLE = 40
const MEMBERS = 5
/** Rooms of the one who changes their name all the time. */
const ROOMS_OF_THE_RENAMED = 200
const OPERATIONS_PER_RENAMING = 400

/** Many rooms, a few people in each, who do now this and now that. */
export interface SoakCrowd {
  readonly rooms: number
  /** Does the next thing. */
  act(): Promise<void>
  close(): Promise<void>
}

interface Syncer extends Account {
  since: string | undefined
}

export async function gatherCrowd(target: Target, rooms: number): Promise<SoakCrowd> {
  const api = openApi(target.baseUrl, { connections: 32 })
  const people: Syncer[] = (await registerPeople(api, target, PEOPLE)).map((one) => ({ ...one, since: undefined }))
  const [renamed] = await registerPeople(api, target, 1)
  const roomIds = await makeRooms(api, people, renamed!, rooms)
  const word = newPrefix()
  let count = 0

  /** Somebody in a room of theirs; the same for the same count. */
  const pick = (): { person: Syncer; roomId: string } => {
    const room = (count * 7919) % rooms
    return { person: people[(room + (count % MEMBERS)) % PEOPLE]!, roomId: roomIds[room]! }
  }

  async function act(): Promise<void> {
    count += 1
    const number = count
    const { person, roomId } = pick()
    const path = `/rooms/${encodeURIComponent(roomId)}`
    const { token } = person
    const kind = number % 20
    if (number % OPERATIONS_PER_RENAMING === 0) {
      const body = { displayname: `Name ${number}` }
      await api.call('PUT', `/profile/${encodeURIComponent(renamed!.userId)}/displayname`, {
        token: renamed!.token,
        body,
      })
    } else if (kind < 9) await sendText(api, token, roomId, `${word}-${number}`, `Message ${number} of many others`)
    else if (kind < 11) {
      await api.request('PUT', `${path}/state/soak.note/${number % 3}`, { token, body: { note: `note ${number}` } })
    } else if (kind < 16) person.since = await sync(api, person)
    else if (kind < 18) {
      const eventId = await sendText(api, token, roomId, `${word}-r${number}`, 'read')
      await api.call('POST', `${path}/receipt/m.read/${encodeURIComponent(eventId)}`, { token, body: {} })
    } else if (kind === 18) await api.call('GET', `${path}/messages?dir=b&limit=20`, { token })
    else {
      await api.request('POST', `${path}/leave`, { token, body: {} })
      await api.request('POST', `${path}/join`, { token, body: {} })
    }
  }

  return { rooms, act, close: () => api.close() }
}

async function makeRooms(api: Api, people: readonly Account[], renamed: Account, rooms: number): Promise<string[]> {
  const numbers = Array.from({ length: rooms }, (_, index) => index)
  return mapConcurrently(numbers, 8, async (room) => {
    const members = Array.from({ length: MEMBERS }, (_, index) => people[(room + index) % PEOPLE]!)
    const body = {
      preset: 'public_chat',
      name: `Room ${room}`,
      power_level_content_override: { state_default: 0 },
    }
    const roomId = await createRoom(api, members[0]!.token, body)
    for (const { token } of members.slice(1)) await join(api, token, roomId)
    if (room < ROOMS_OF_THE_RENAMED) await join(api, renamed.token, roomId)
    return roomId
  })
}

async function sync(api: Api, { token, since }: Syncer): Promise<string> {
  const filter = { room: { timeline: { limit: 10 }, state: { lazy_load_members: true } } }
  const query = since === undefined ? { filter } : { since, filter }
  const answer: Json = await api.call('GET', syncPath(query), { token })
  return answer.next_batch
}
