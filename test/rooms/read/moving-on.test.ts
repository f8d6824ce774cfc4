import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { RoomId, ServerName } from '../../../src/core/ids.ts'
import { forEachState } from '../../../src/core/state/trie.ts'
import { createCurrentRooms } from '../../../src/domain/rooms/read/current-rooms.ts'
import type { Room } from '../../../src/domain/rooms/room/room.ts'
import { seededRandom } from '../../store/events/forked-room.ts'
import { type Account, type Api, createRoom, join, openApi, register } from '../../support/api.ts'
import { startServer, type TestServer } from '../../support/server.ts'

let server: TestServer
let api: Api
let people: Account[]

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  people = []
  for (const name of ['anna', 'bert', 'cara', 'dora', 'emil']) people.push(await register(api, name))
})
afterAll(async () => {
  await api.close()
  await server.close()
})

/** A node that stands by, and the rooms that it has read. */
function openNode() {
  let loads = 0
  const { db } = server.database
  const find = createCurrentRooms<Room>({
    db,
    serverName: server.config.server_name as ServerName,
    budget: new ByteBudget(10_000_000),
    viewOf(room) {
      loads++
      return room
    },
  })
  return { find, loads: () => loads }
}

/** All of a room that its readers use. */
function shown({ committed, counts, keys, localMembers, purgedTo }: Room) {
  const { extremities, chain, seq, state, version, depth, pos, nid, notifiable, merged, tip } = committed
  const named: Record<string, number> = {}
  forEachState(state, (keyId, eventNid) => {
    const { type, stateKey } = keys.nameOf(keyId)
    named[`${type} ${stateKey}`] = eventNid
  })
  // Since when they have been joined is known better by a copy that saw them come, and so are their names, which only a writer needs.
  const members = [...localMembers.values()]
    .map(({ userId, userNid }) => ({ userId, userNid }))
    .sort((a, b) => a.userNid - b.userNid)
  const ids = extremities.map(({ id, after }) => ({ id, after }))
  return {
    named,
    counts: { ...counts },
    members,
    ids,
    purgedTo,
    chain,
    seq,
    version,
    depth,
    pos,
    nid,
    notifiable,
    merged,
    tip,
  }
}

it('a room that moves on is the same as one that is read anew, whatever happens in it', async () => {
  const random = seededRandom(20261126)
  const pick = <T>(some: readonly T[]): T => some[random(some.length)]!
  const [owner] = people as [Account]
  const room = (await createRoom(api, owner.token, { preset: 'public_chat' })) as RoomId
  const at = `/rooms/${encodeURIComponent(room)}`
  let count = 0
  const sent: string[] = []
  const send = async ({ token }: Account, type: string, body: object): Promise<void> => {
    const { event_id } = await api.call('PUT', `${at}/send/${type}/${count++}`, { token, body })
    sent.push(event_id)
  }
  const acts: Readonly<Record<string, (by: Account, other: Account) => Promise<unknown>>> = {
    message: (by) => send(by, 'm.room.message', { msgtype: 'm.text', body: `${count}` }),
    reaction: (by) =>
      send(by, 'm.reaction', { 'm.relates_to': { rel_type: 'm.annotation', event_id: pick(sent), key: `${count}` } }),
    topic: ({ token }) => api.call('PUT', `${at}/state/m.room.topic/`, { token, body: { topic: `${count++}` } }),
    'a new key': ({ token }) => api.call('PUT', `${at}/state/x/${count++}`, { token, body: {} }),
    join: ({ token }) => join(api, token, room),
    leave: ({ token }) => api.call('POST', `${at}/leave`, { token, body: {} }),
    invite: ({ token }, { userId }) => api.call('POST', `${at}/invite`, { token, body: { user_id: userId } }),
    kick: ({ token }, { userId }) => api.call('POST', `${at}/kick`, { token, body: { user_id: userId } }),
    ban: ({ token }, { userId }) => api.call('POST', `${at}/ban`, { token, body: { user_id: userId } }),
    unban: ({ token }, { userId }) => api.call('POST', `${at}/unban`, { token, body: { user_id: userId } }),
    rename: ({ token, userId }) =>
      api.call('PUT', `/profile/${encodeURIComponent(userId)}/displayname`, {
        token,
        body: { displayname: `name ${count++}` },
      }),
    redaction: ({ token }) =>
      api.call('PUT', `${at}/redact/${encodeURIComponent(pick(sent))}/${count++}`, { token, body: {} }),
  }
  await send(owner, 'm.room.message', { msgtype: 'm.text', body: 'first' })
  const node = openNode()
  const happened: Record<string, number> = {}
  for (let round = 0; round < 80; round++) {
    for (let act = 0; act < 1 + (round % 3); act++) {
      const name = pick(Object.keys(acts))
      // Many are not allowed just then.
      await acts[name]!(random(2) === 0 ? owner : pick(people), pick(people)).then(
        () => (happened[name] = (happened[name] ?? 0) + 1),
        () => undefined,
      )
    }
    const [moved, anew] = [await node.find(room), await openNode().find(room)]
    expect(shown(moved!)).toEqual(shown(anew!))
  }
  expect(Object.keys(happened).sort()).toEqual(Object.keys(acts).sort())
  // After redactions above all.
  expect(node.loads()).toBeLessThan(50)
})
