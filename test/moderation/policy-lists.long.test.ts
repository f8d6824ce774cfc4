import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN, type Office, openOffice, registerBySecret, SECRET } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, sendText, syncPath } from '../support/api.ts'
import { openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let office: Office
let alice: Account
let troll: Account
let list: string
let room: string

const enc = encodeURIComponent
const LISTS = '/_hearth/admin/v1/policy_lists'
const rule = (entity: string, recommendation = 'm.ban') => ({ entity, recommendation, reason: 'spam' })
const write = (kind: string, key: string, content: object) =>
  office.api.call('PUT', `/rooms/${enc(list)}/state/m.policy.rule.${kind}/${enc(key)}`, {
    token: alice.token,
    body: content,
  })
const stateOf = async (): Promise<Json> => (await office.call('GET', LISTS)).policy_lists[0]
const ask = (who: Account, path: string, body: object = {}) =>
  office.api.request('POST', path, { token: who.token, body })

beforeAll(async () => {
  office = await openOffice({ moderation: { ban_as: 'mod' } })
  alice = await office.person('alice')
  troll = await office.person('troll')
  list = await createRoom(office.api, alice.token, { preset: 'public_chat', name: 'List' })
  room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
})

afterAll(() => office.close())

describe('a policy list', () => {
  test('is added by operators, of rooms that this server is in', async () => {
    expect((await office.ask('PUT', `${LISTS}/${enc(list)}`, undefined, alice.token)).status).toBe(403)
    const nowhere = await office.ask('PUT', `${LISTS}/${enc('!none:localhost')}`)
    expect([nowhere.status, nowhere.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect(await office.call('PUT', `${LISTS}/${enc(list)}`)).toMatchObject({ state: 'in force', rules: 0 })
    expect(await stateOf()).toMatchObject({ room_id: list, added_by: office.boss.userId })
  })

  test('keeps banned users from joining, inviting and knocking, from the moment of the rule', async () => {
    await join(office.api, troll.token, room)
    await write('user', 'a', rule('@troll:*'))
    await waitUntil('the rule', async () => (await stateOf()).rules === 1)
    await office.api.call('POST', `/rooms/${enc(room)}/leave`, { token: troll.token, body: {} })
    const joined = await ask(troll, `/join/${enc(room)}`)
    expect([joined.status, joined.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(joined.body.error).toContain('spam')
    expect((await ask(troll, `/knock/${enc(room)}`)).status).toBe(403)
    const own = await createRoom(office.api, troll.token)
    expect((await ask(troll, `/rooms/${enc(own)}/invite`, { user_id: alice.userId })).status).toBe(403)
    expect((await ask(troll, '/createRoom', { invite: [alice.userId] })).status).toBe(403)
    const state = `/rooms/${enc(own)}/state/m.room.member/${enc(alice.userId)}`
    const body = { membership: 'invite' }
    expect((await office.api.request('PUT', state, { token: troll.token, body })).status).toBe(403)
    expect((await ask(alice, `/rooms/${enc(room)}/invite`, { user_id: troll.userId })).status).toBe(403)
    // Others are not concerned, and neither is who leaves.
    const carol = await office.person('carol')
    expect((await ask(carol, `/join/${enc(room)}`)).status).toBe(200)
  })

  test('ends with its rule, and after a restart is as before', async () => {
    await office.server.restart()
    expect((await ask(troll, `/join/${enc(room)}`)).status).toBe(403)
    await write('user', 'a', {})
    await waitUntil('its end', async () => (await stateOf()).rules === 0)
    expect((await ask(troll, `/join/${enc(room)}`)).status).toBe(200)
  })

  test('keeps everybody out of banned rooms, but administrators', async () => {
    const bad = await createRoom(office.api, troll.token, { preset: 'public_chat' })
    await write('room', 'b', rule(bad))
    await waitUntil('the rule', async () => (await stateOf()).rules === 1)
    expect((await ask(alice, `/join/${enc(bad)}`)).status).toBe(403)
    expect((await ask(office.boss, `/join/${enc(bad)}`)).status).toBe(200)
    await write('user', 'c', rule(office.boss.userId))
    await waitUntil('both rules', async () => (await stateOf()).rules === 2)
    expect((await ask(office.boss, `/join/${enc(room)}`)).status).toBe(200)
    expect((await stateOf()).warning).toContain(`bans ${office.boss.userId}, an administrator`)
  })

  test('puts people out of the rooms of a moderator, in that name, until its rule ends', async () => {
    const mod = await office.person('mod')
    const [guarded, other] = [
      await createRoom(office.api, mod.token, { preset: 'public_chat' }),
      await createRoom(office.api, alice.token, { preset: 'public_chat' }),
    ]
    const [nuisance, again] = [await office.person('nuisance1'), await office.person('nuisance2')]
    for (const who of [office.boss, nuisance, again, alice]) await join(office.api, who.token, guarded)
    for (const who of [mod, nuisance]) await join(office.api, who.token, other)
    const memberIn = async (id: string, { userId }: Account): Promise<Json> => {
      const { chunk } = await office.api.call('GET', `/rooms/${enc(id)}/members`, { token: alice.token })
      const { sender, content } = chunk.find(({ state_key: key }: Json) => key === userId)
      return { sender, ...content }
    }
    await write('user', 'n', rule('@nuisance?:*'))
    const banned = await waitUntil('the ban', async () => {
      const member = await memberIn(guarded, nuisance)
      return member.membership === 'ban' && member
    })
    expect(banned).toMatchObject({ sender: mod.userId, reason: 'spam' })
    await waitUntil('the other ban', async () => (await memberIn(guarded, again)).membership === 'ban')
    // The person behind the moderator's account thinks twice, and bans again in the same name.
    for (const act of ['unban', 'ban']) {
      const body = { user_id: again.userId }
      await office.api.call('POST', `/rooms/${enc(guarded)}/${act}`, { token: mod.token, body })
    }
    // Neither where the moderator has no power, nor administrators, nor others.
    expect((await memberIn(other, nuisance)).membership).toBe('join')
    expect((await memberIn(guarded, office.boss)).membership).toBe('join')
    expect((await memberIn(guarded, alice)).membership).toBe('join')
    const record = `/_hearth/admin/v1/acts?target=${enc(`${nuisance.userId} ${guarded}`)}`
    expect((await office.call('GET', record)).acts).toMatchObject([{ actor: 'server', outcome: 'done' }])

    // Who was in a room before the moderator came is put out of it, too.
    const later = await createRoom(office.api, alice.token, {
      preset: 'public_chat',
      power_level_content_override: { users: { [alice.userId]: 100, [mod.userId]: 50 } },
    })
    const early = await office.person('early')
    await join(office.api, early.token, later)
    await write('user', 'e', rule('@early:*'))
    await waitUntil('the rule', async () => (await ask(early, `/join/${enc(room)}`)).status === 403)
    await join(office.api, mod.token, later)
    await waitUntil('the ban', async () => (await memberIn(later, early)).membership === 'ban')
    await write('user', 'e', {})

    // A list that is held ends no bans; one whose rule has ended does.
    await write('user', 'wide', rule('*'))
    await waitUntil('the warning', async () => (await stateOf()).state === 'held')
    await write('user', 'wide', {})
    await waitUntil('the rest of it', async () => (await stateOf()).state === 'in force')
    expect((await memberIn(guarded, nuisance)).membership).toBe('ban')
    await office.api.call('POST', `/rooms/${enc(guarded)}/ban`, { token: mod.token, body: { user_id: troll.userId } })
    await write('user', 'n', {})
    await waitUntil('the end of the ban', async () => (await memberIn(guarded, nuisance)).membership === 'leave')
    expect((await memberIn(guarded, troll)).membership).toBe('ban')
    expect((await memberIn(guarded, again)).membership).toBe('ban')
  })

  test.each(['*', '@*:localhost', '@*:*'])('that bans everybody (%s) is held, with a warning', async (entity) => {
    await write('user', 'wide', rule(entity))
    const held = await waitUntil('the warning', async () => {
      const is = await stateOf()
      return is.state === 'held' && is
    })
    expect(held.warning).toContain(`"${entity}"`)
    const dora = await office.person(`dora${entity.length}`)
    expect((await ask(dora, `/join/${enc(room)}`)).status).toBe(200)
    await write('user', 'wide', {})
    await waitUntil('the rest of it', async () => (await stateOf()).state === 'in force')
  })

  test('ends a rule that is redacted', async () => {
    await write('user', 'a', rule('@troll:*'))
    await waitUntil('the rule', async () => (await ask(troll, `/join/${enc(room)}`)).status === 403)
    const state = `/rooms/${enc(list)}/state/m.policy.rule.user/a?format=event`
    const { event_id } = await office.api.call('GET', state, { token: alice.token })
    const redact = `/rooms/${enc(list)}/redact/${enc(event_id)}/once`
    await office.api.call('PUT', redact, { token: alice.token, body: {} })
    await waitUntil('its end', async () => (await ask(troll, `/join/${enc(room)}`)).status === 200)
  })

  test('is in force as it was when everybody of this server has left it, also after a restart', async () => {
    await office.api.call('POST', `/rooms/${enc(room)}/leave`, { token: troll.token, body: {} })
    await write('user', 'a', rule('@troll:*'))
    await waitUntil('the rule', async () => (await ask(troll, `/join/${enc(room)}`)).status === 403)
    await office.api.call('POST', `/rooms/${enc(list)}/leave`, { token: alice.token, body: {} })
    await office.server.restart()
    expect((await ask(troll, `/join/${enc(room)}`)).status).toBe(403)
    const { state, warning } = await stateOf()
    expect([state, warning]).toEqual(['in force', expect.stringContaining('Nobody of this server')])
  })

  test('is removed', async () => {
    await office.call('DELETE', `${LISTS}/${enc(list)}`)
    const again = await office.ask('DELETE', `${LISTS}/${enc(list)}`)
    expect([again.status, again.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect((await office.call('GET', LISTS)).policy_lists).toEqual([])
    const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(list)}`)
    expect(new Set(acts.map(({ act }: Json) => act))).toEqual(
      new Set(['DELETE /_hearth/admin/v1/policy_lists/{roomId}', 'PUT /_hearth/admin/v1/policy_lists/{roomId}']),
    )
  })
})

test('users of banned servers neither join here nor invite, and their files are not shown', async () => {
  const street = openNeighbourhood()
  try {
    const [alpha, beta] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
    const boss = await registerBySecret(alpha.api, 'boss', true)
    const [near, far] = [await alpha.person('near'), await beta.person('far')]
    const bans = await createRoom(alpha.api, near.token, { name: 'Bans' })
    const open = await createRoom(alpha.api, near.token, { preset: 'public_chat' })
    await alpha.api.call('PUT', `/_hearth/admin/v1/policy_lists/${enc(bans)}`, { token: boss.token })
    await alpha.api.call('PUT', `/rooms/${enc(bans)}/state/m.policy.rule.server/x`, {
      token: near.token,
      body: rule(beta.name),
    })
    await waitUntil('the rule', async () => {
      const { policy_lists } = await alpha.api.call('GET', '/_hearth/admin/v1/policy_lists', { token: boss.token })
      return policy_lists[0].rules === 1
    })
    const path = `/join/${enc(open)}?server_name=${enc(alpha.name)}`
    const joined = await beta.api.request('POST', path, { token: far.token, body: {} })
    expect(joined.status).toBe(403)
    const theirs = await createRoom(beta.api, far.token)
    const invited = await beta.api.request('POST', `/rooms/${enc(theirs)}/invite`, {
      token: far.token,
      body: { user_id: near.userId },
    })
    expect(invited.status).toBe(403)
    const { rooms } = await alpha.api.call('GET', syncPath({}), { token: near.token })
    expect(rooms.invite ?? {}).toEqual({})
    const asked = beta.front.requests.length
    const media = `/_matrix/client/v1/media/download/${beta.name}/whatever`
    expect((await alpha.api.request('GET', media, { token: near.token })).status).toBe(404)
    expect(beta.front.requests.slice(asked).filter(({ url }) => url.includes('media'))).toEqual([])
    expect((await alpha.api.request('GET', `${ADMIN}/v1/server_version`)).status).toBe(200)
  } finally {
    await street.close()
  }
})

test('what banned servers send is refused, and hidden where others bring it; their users may leave', async () => {
  const street = openNeighbourhood()
  try {
    const values = { registration: { enabled: true, shared_secret: SECRET } }
    const [alpha, beta, gamma] = await Promise.all([street.open(values), street.open(), street.open()])
    const boss = await registerBySecret(alpha.api, 'boss', true)
    const [far, leaver, friend] = [await beta.person('far'), await beta.person('leaver'), await gamma.person('friend')]
    const bans = await createRoom(alpha.api, boss.token, { name: 'Bans' })
    const room = await createRoom(alpha.api, boss.token, { preset: 'public_chat' })
    for (const [at, who] of [
      [beta, far],
      [beta, leaver],
      [gamma, friend],
    ] as const) {
      await at.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: who.token, body: {} })
    }
    const shownAt = async ({ api }: typeof alpha, { token }: Account): Promise<string[]> => {
      const { chunk } = await api.call('GET', `/rooms/${enc(room)}/messages?dir=f&limit=100`, { token })
      return chunk.flatMap(({ content }: Json) => content.body ?? [])
    }
    await sendText(beta.api, far.token, room, '1', 'before')
    await waitUntil('what was said before', async () => (await shownAt(alpha, boss)).includes('before'))
    await alpha.api.call('PUT', `/_hearth/admin/v1/policy_lists/${enc(bans)}`, { token: boss.token })
    await alpha.api.call('PUT', `/rooms/${enc(bans)}/state/m.policy.rule.server/x`, {
      token: boss.token,
      body: rule(beta.name),
    })
    await waitUntil('the rule', async () => {
      const { policy_lists } = await alpha.api.call('GET', LISTS, { token: boss.token })
      return policy_lists[0].rules === 1
    })

    await beta.api.call('POST', `/rooms/${enc(room)}/leave`, { token: leaver.token, body: {} })
    const membership = `/rooms/${enc(room)}/state/m.room.member/${enc(leaver.userId)}`
    await waitUntil('the leave', async () => {
      return (await alpha.api.call('GET', membership, { token: boss.token })).membership === 'leave'
    })
    const typing = `/rooms/${enc(room)}/typing/${enc(far.userId)}`
    await beta.api.call('PUT', typing, { token: far.token, body: { typing: true, timeout: 60_000 } })
    await sendText(beta.api, far.token, room, '2', 'after')
    const { db } = alpha.server.database
    const refusals = `SELECT answer FROM federation_txn WHERE answer LIKE '%has nothing to do with%'`
    await waitUntil('the refusal', async () => (await db.query(refusals)).length > 0)
    const after = `SELECT standing, reason FROM event WHERE json LIKE '%"body":"after"%'`
    expect(await db.query(after)).toEqual([])

    // Another server brings it, because the next message builds on it.
    await waitUntil('it elsewhere', async () => (await shownAt(gamma, friend)).includes('after'))
    await sendText(gamma.api, friend.token, room, '1', 'hello')
    await waitUntil('what the friend said', async () => (await shownAt(alpha, boss)).includes('hello'))
    expect(await shownAt(alpha, boss)).toEqual(['before', 'hello'])
    expect(await db.query(after)).toEqual([
      { standing: 'soft-failed', reason: expect.stringContaining('by a policy list of this server') },
    ])
    const { rooms } = await alpha.api.call('GET', syncPath({}), { token: boss.token })
    const typists = (rooms.join[room].ephemeral?.events ?? []).filter(({ type }: Json) => type === 'm.typing')
    expect(typists.flatMap(({ content }: Json) => content.user_ids)).toEqual([])

    // What they said of devices meanwhile is made up for when they are banned no more.
    const device = `/devices/${enc(far.deviceId)}`
    await beta.api.call('PUT', device, { token: far.token, body: { display_name: 'Another name' } })
    const missed = 'SELECT server FROM missed_device_list'
    await waitUntil('what was missed', async () => (await db.query(missed)).length > 0)
    const { next_batch: since } = await alpha.api.call('GET', syncPath({}), { token: boss.token })
    await alpha.api.call('PUT', `/rooms/${enc(bans)}/state/m.policy.rule.server/x`, { token: boss.token, body: {} })
    await waitUntil('the news', async () => {
      const { device_lists } = await alpha.api.call('GET', syncPath({ since }), { token: boss.token })
      return device_lists?.changed?.includes(far.userId)
    })
    await waitUntil('the end of it', async () => (await db.query(missed)).length === 0)
  } finally {
    await street.close()
  }
})

test('who is banned by name and comes into a room through another server is put out of it', async () => {
  const street = openNeighbourhood()
  try {
    const values = { registration: { enabled: true, shared_secret: SECRET }, moderation: { ban_as: 'boss' } }
    const [alpha, beta] = await Promise.all([street.open(values), street.open()])
    const boss = await registerBySecret(alpha.api, 'boss', true)
    const [friend, nuisance] = [await beta.person('friend'), await beta.person('nuisance')]
    const bans = await createRoom(alpha.api, boss.token, { name: 'Bans' })
    const room = await createRoom(alpha.api, boss.token, { preset: 'public_chat' })
    await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: friend.token, body: {} })
    await alpha.api.call('PUT', `/_hearth/admin/v1/policy_lists/${enc(bans)}`, { token: boss.token })
    await alpha.api.call('PUT', `/rooms/${enc(bans)}/state/m.policy.rule.user/x`, {
      token: boss.token,
      body: rule('@nuisance:*'),
    })
    await waitUntil('the rule', async () => {
      const { policy_lists } = await alpha.api.call('GET', LISTS, { token: boss.token })
      return policy_lists[0].rules === 1
    })
    await join(beta.api, nuisance.token, room)
    const path = `/rooms/${enc(room)}/state/m.room.member/${enc(nuisance.userId)}`
    await waitUntil('the ban, there too', async () => {
      return (await beta.api.call('GET', path, { token: friend.token })).membership === 'ban'
    })
    const other = `/rooms/${enc(room)}/state/m.room.member/${enc(friend.userId)}`
    expect((await alpha.api.call('GET', other, { token: boss.token })).membership).toBe('join')
  } finally {
    await street.close()
  }
})
