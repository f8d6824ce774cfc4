import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Api, openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type KeyData, keysPath, newKey, newOwner, OTHER_ROOM, type Owner, ROOM } from './backups.ts'

let server: TestServer
let api: Api
let alice: Owner

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await newOwner(api, 'alice')
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const of = (is_verified: boolean, first_message_index: number, forwarded_count: number) =>
  newKey({ is_verified, first_message_index, forwarded_count })

/** Which key of a session is kept (client-server API, "Backup algorithms"). */
const RULES: [rule: string, old: KeyData, given: KeyData, isReplaced: boolean][] = [
  ['a verified key replaces one that is not, whatever its index and count', of(false, 0, 0), of(true, 9, 9), true],
  ['a key that is not verified never replaces one that is', of(true, 9, 9), of(false, 0, 0), false],
  ['of two verified, the lower first_message_index is kept', of(true, 5, 0), of(true, 4, 9), true],
  ['of two not verified, the lower first_message_index is kept', of(false, 5, 0), of(false, 4, 9), true],
  ['a higher first_message_index replaces nothing', of(false, 4, 9), of(false, 5, 0), false],
  ['of the same index, the lower forwarded_count is kept', of(false, 5, 3), of(false, 5, 2), true],
  ['a higher forwarded_count replaces nothing', of(false, 5, 2), of(false, 5, 3), false],
  ['of equals the first is kept', of(true, 5, 2), of(true, 5, 2), false],
]

describe('a key for a session that is in the backup already', () => {
  it.each(RULES)('%s', async (_, old, given, isReplaced) => {
    const version = await alice.backup()
    const path = keysPath(version, ROOM, 's')
    const { etag: before } = await alice.call('PUT', path, old)
    const { etag: after, count } = await alice.call('PUT', path, given)
    expect(await alice.call('GET', path)).toEqual(isReplaced ? given : old)
    expect(count).toBe(1)
    expect(after !== before).toBe(isReplaced)
  })
})

type Model = Map<string, KeyData>
type Step =
  | { readonly kind: 'put'; readonly keys: readonly [room: string, session: string, key: KeyData][] }
  | { readonly kind: 'delete'; readonly room: string | undefined; readonly session: string | undefined }

const name = (room: string, session: string) => `${room} ${session}`

function isBetter(given: KeyData, old: KeyData): boolean {
  if (given.is_verified !== old.is_verified) return given.is_verified
  if (given.first_message_index !== old.first_message_index) return given.first_message_index < old.first_message_index
  return given.forwarded_count < old.forwarded_count
}

/** What the backup must hold after a step; true when that is not what it held. */
function apply(model: Model, step: Step): boolean {
  let isChanged = false
  if (step.kind === 'put') {
    for (const [room, session, key] of step.keys) {
      const old = model.get(name(room, session))
      if (old && !isBetter(key, old)) continue
      model.set(name(room, session), key)
      isChanged = true
    }
    return isChanged
  }
  for (const place of [...model.keys()]) {
    const [room, session] = place.split(' ')
    if (step.room !== undefined && step.room !== room) continue
    if (step.session !== undefined && step.session !== session) continue
    model.delete(place)
    isChanged = true
  }
  return isChanged
}

function nested(keys: Iterable<[room: string, session: string, key: KeyData]>) {
  const rooms: Record<string, { sessions: Record<string, KeyData> }> = {}
  for (const [room, session, key] of keys) {
    rooms[room] ??= { sessions: {} }
    rooms[room].sessions[session] = key
  }
  return { rooms }
}

const roomIds = fc.constantFrom(ROOM, OTHER_ROOM)
const sessionIds = fc.constantFrom('a', 'b', 'c')
const keys = fc
  .tuple(fc.boolean(), fc.nat(2), fc.nat(2))
  .map(([verified, index, forwarded]) => of(verified, index, forwarded))
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .uniqueArray(fc.tuple(roomIds, sessionIds, keys), {
        maxLength: 5,
        selector: ([room, session]) => name(room, session),
      })
      .map((some) => ({ kind: 'put' as const, keys: some })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.option(roomIds, { nil: undefined }), fc.option(sessionIds, { nil: undefined }))
      .map(([room, session]) => ({ kind: 'delete' as const, room, session: room === undefined ? undefined : session })),
  },
)

it('any history of puts and deletions leaves what the rules say, and an etag that follows it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 12 }), async (history) => {
      const version = await alice.backup()
      const model: Model = new Map()
      let { etag } = await alice.call('GET', '/room_keys/version')
      for (const step of history) {
        const answer =
          step.kind === 'put'
            ? await alice.call('PUT', keysPath(version), nested(step.keys))
            : await alice.call('DELETE', keysPath(version, step.room, step.session))
        const isChanged = apply(model, step)
        expect(answer.count).toBe(model.size)
        expect(answer.etag !== etag).toBe(isChanged)
        etag = answer.etag
      }
      const held = [...model].map(([place, key]): [string, string, KeyData] => [
        ...(place.split(' ') as [string, string]),
        key,
      ])
      expect(await alice.call('GET', keysPath(version))).toEqual(nested(held))
    }),
    { numRuns: 40 },
  )
})
