import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Office, openOffice } from '../admin/office.ts'
import { type Account, createRoom, type Json, join } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

let office: Office
let alice: Account
let mod: Account
let list: string

const enc = encodeURIComponent
const LISTS = '/_hearth/admin/v1/policy_lists'
const TYPE = 'm.room.server_acl'
const write = (kind: string, key: string, entity: string | undefined) =>
  office.api.call('PUT', `/rooms/${enc(list)}/state/m.policy.rule.${kind}/${enc(key)}`, {
    token: alice.token,
    body: entity === undefined ? {} : { entity, recommendation: 'm.ban', reason: 'spam' },
  })
const aclOf = async (room: string): Promise<Json | undefined> => {
  const { status, body } = await office.api.request('GET', `/rooms/${enc(room)}/state/${TYPE}`, { token: alice.token })
  return status === 200 ? body : undefined
}
const written = async (room: string): Promise<Json[]> => {
  const { chunk } = await office.api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`, { token: alice.token })
  return chunk.filter(({ type, sender }: Json) => type === TYPE && sender === mod.userId)
}

beforeAll(async () => {
  office = await openOffice({ moderation: { ban_as: 'mod', write_acls: true } })
  alice = await office.person('alice')
  mod = await office.person('mod')
  list = await createRoom(office.api, alice.token, { name: 'List' })
})
afterAll(() => office.close())

test('what a list would do is seen before it is followed, and nothing is done', async () => {
  const room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
  const bad = await createRoom(office.api, alice.token)
  const tried = await createRoom(office.api, alice.token)
  const troll = await office.person('troll')
  for (const who of [mod, troll]) await join(office.api, who.token, room)
  const rules = [
    ['user', '@troll:*'],
    ['user', '@boss:*'],
    ['server', 'evil.example'],
    ['server', 'unknown.example'],
    ['room', bad],
  ]
  for (const [kind, entity] of rules) {
    await office.api.call('PUT', `/rooms/${enc(tried)}/state/m.policy.rule.${kind}/${enc(`rule ${entity}`)}`, {
      token: alice.token,
      body: { entity, recommendation: 'm.ban', reason: '' },
    })
  }
  await office.server.database.db.tx((tx) => tx.query(`INSERT INTO matrix_user (user_id) VALUES ('@x:evil.example')`))
  expect(await office.call('GET', `${LISTS}/${enc(tried)}/preview`)).toEqual({
    room_id: tried,
    state: 'in force',
    warning: expect.stringContaining('an administrator of this server'),
    rules: { user: 2, server: 2, room: 1 },
    accounts: { total: 1, examples: [troll.userId] },
    servers: { total: 1, examples: ['evil.example'] },
    rooms: { total: 1, examples: [bad] },
    bans: { total: 1, examples: [{ user_id: troll.userId, room_id: room }] },
    acls: 0,
    is_whole: true,
  })
  expect((await office.call('GET', LISTS)).policy_lists).toEqual([])
  await office.api.call('PUT', `/rooms/${enc(tried)}/state/m.policy.rule.user/wide`, {
    token: alice.token,
    body: { entity: '*', recommendation: 'm.ban' },
  })
  expect(await office.call('GET', `${LISTS}/${enc(tried)}/preview`)).toMatchObject({
    state: 'held',
    accounts: { total: 0 },
    servers: { total: 0 },
    rooms: { total: 0 },
  })
  // A rule that is redacted in between is not remembered.
  const state = `/rooms/${enc(tried)}/state/m.policy.rule.user/wide?format=event`
  const { event_id } = await office.api.call('GET', state, { token: alice.token })
  const redact = `/rooms/${enc(tried)}/redact/${enc(event_id)}/once`
  await office.api.call('PUT', redact, { token: alice.token, body: {} })
  expect(await office.call('GET', `${LISTS}/${enc(tried)}/preview`)).toMatchObject({ state: 'in force' })
  expect((await office.ask('GET', `${LISTS}/${enc('!none:localhost')}/preview`)).status).toBe(404)
  expect((await office.ask('GET', `${LISTS}/${enc(tried)}/preview`, undefined, alice.token)).status).toBe(403)
})

test('rooms keep out the servers that lists ban, by one event for many changes, until the rules end', async () => {
  const power = { power_level_content_override: { users: { [alice.userId]: 100, [mod.userId]: 100 } } }
  const room = await createRoom(office.api, alice.token, {
    ...power,
    preset: 'public_chat',
    initial_state: [
      { type: TYPE, state_key: '', content: { allow: ['*'], deny: ['people.example'], allow_ip_literals: false } },
    ],
  })
  const fresh = await createRoom(office.api, alice.token, { ...power, preset: 'public_chat' })
  const weak = await createRoom(office.api, alice.token, { preset: 'public_chat' })
  for (const one of [room, fresh, weak]) await join(office.api, mod.token, one)
  await write('server', 'first', 'first.example')
  expect((await office.call('GET', `${LISTS}/${enc(list)}/preview`)).acls).toBe(2)
  expect(await aclOf(fresh)).toBeUndefined()
  await office.call('PUT', `${LISTS}/${enc(list)}`)
  const denied = async () => [await aclOf(room), await aclOf(fresh)].map((acl) => acl?.deny.length)
  await waitUntil('the first rule', async () => (await denied()).join() === '2,1')
  await Promise.all([
    write('server', 'first', undefined),
    write('server', 'a', 'evil.example'),
    write('server', 'b', '*.bad.example'),
    write('server', 'c', 'port.example:8448'),
    write('server', 'd', 'people.example'),
  ])
  await waitUntil('the others', async () => (await denied()).join() === '3,3')
  // Rules written at once may be stored in any order.
  const deny = expect.toSatisfy(
    (globs: string[]) => globs.toSorted().join() === '*.bad.example,evil.example,people.example',
  )
  expect(await aclOf(room)).toEqual({ allow: ['*'], allow_ip_literals: false, deny })
  expect(await aclOf(fresh)).toMatchObject({ deny })
  expect(await aclOf(weak)).toBeUndefined()
  expect([await written(room), await written(fresh)].map(({ length }) => length)).toEqual([2, 2])
  const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(room)}`)
  const done = { actor: 'server', outcome: 'done' }
  expect(acts).toMatchObject([done, done])

  // After a restart it is still known what is whose.
  await office.server.restart()
  for (const key of ['a', 'd']) await write('server', key, undefined)
  await waitUntil('the end of it', async () => (await aclOf(room))!.deny.length === 2)
  expect((await aclOf(room))!.deny).toEqual(['people.example', '*.bad.example'])
  await waitUntil('its end there', async () => (await aclOf(fresh))!.deny.length === 1)

  // A list that is held takes nothing out; one that is followed no more does.
  await write('server', 'wide', '*')
  await waitUntil('the warning', async () => (await office.call('GET', LISTS)).policy_lists[0].state === 'held')
  await office.call('DELETE', `${LISTS}/${enc(list)}`)
  await waitUntil('the rest', async () => (await aclOf(room))!.deny.length === 1)
  expect((await aclOf(room))!.deny).toEqual(['people.example'])
  await waitUntil('nothing there', async () => (await aclOf(fresh))!.deny.length === 0)
})

test('what somebody writes into an ACL while a list changes it stays', async () => {
  const room = await createRoom(office.api, alice.token, {
    preset: 'public_chat',
    power_level_content_override: { users: { [alice.userId]: 100, [mod.userId]: 100 } },
  })
  await join(office.api, mod.token, room)
  for (const key of ['a', 'b', 'c', 'd', 'wide']) await write('server', key, undefined)
  await office.call('PUT', `${LISTS}/${enc(list)}`)
  const holder = new pg.Client(office.server.database.connection)
  await holder.connect()
  try {
    // What was added is noted between the plan and its event.
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE list_acl IN EXCLUSIVE MODE')
    await write('server', 'race', 'race.example')
    await waitUntil('the plan', async () => {
      const text = `SELECT 1 AS one FROM pg_locks WHERE relation = 'list_acl'::regclass AND NOT granted`
      return (await office.server.database.db.query(text)).length > 0
    })
    const body = { allow: ['*'], allow_ip_literals: true, deny: ['person.example'] }
    await office.api.call('PUT', `/rooms/${enc(room)}/state/${TYPE}`, { token: alice.token, body })
    await holder.query('COMMIT')
  } finally {
    await holder.end()
  }
  await waitUntil('the ACL of the list', async () => (await written(room)).length === 1)
  expect((await aclOf(room))!.deny).toEqual(['person.example', 'race.example'])
  await write('server', 'race', undefined)
  await waitUntil('the end of it', async () => (await written(room)).length === 2)
  expect((await aclOf(room))!.deny).toEqual(['person.example'])
})
