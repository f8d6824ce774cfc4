import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { inviteVerdict } from '../../src/core/invite-permission.ts'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import { type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { cpuMs } from '../support/slowness.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const dataAt = (userId: string, type: string) => `/user/${encodeURIComponent(userId)}/account_data/${type}`
const set = (who: Person, type: string, content: object) => who.call('PUT', dataAt(who.userId, type), content)
const STABLE = 'm.invite_permission_config'
const blocked = { status: 403, body: { errcode: 'M_INVITE_BLOCKED' } }

describe('a user who wants no invitations', () => {
  it.each([STABLE, 'org.matrix.msc4380.invite_permission_config'])(
    'says so by %s, and gets none in any way',
    async (type) => {
      const room = await alice.createRoom()
      const earlier = await alice.createRoom()
      await alice.invite(earlier, bob)
      await set(bob, type, { default_action: 'block' })
      const { next_batch: since } = await bob.sync()
      expect(await alice.ask('POST', inRoom(room, '/invite'), { user_id: bob.userId })).toMatchObject(blocked)
      expect(await alice.ask('POST', '/createRoom', { invite: [bob.userId] })).toMatchObject(blocked)
      const member = inRoom(room, `/state/m.room.member/${encodeURIComponent(bob.userId)}`)
      expect(await alice.ask('PUT', member, { membership: 'invite' })).toMatchObject(blocked)
      for (const query of ['', `&since=${since}`]) expect((await bob.sync(query)).rooms?.invite ?? {}).toEqual({})
      const kept = await alice.call('GET', inRoom(earlier, `/state/m.room.member/${encodeURIComponent(bob.userId)}`))
      expect(kept.membership).toBe('invite')
      await set(bob, type, {})
      expect(Object.keys((await bob.sync()).rooms.invite)).toContain(earlier)
      await alice.invite(room, bob)
      expect(Object.keys((await bob.sync()).rooms.invite)).toContain(room)
    },
  )

  it('still join by themselves, and an unknown action blocks nobody', async () => {
    await set(bob, STABLE, { default_action: 'block' })
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    await set(bob, STABLE, { default_action: 'an action of the future' })
    await alice.invite(await alice.createRoom(), bob)
    await set(bob, STABLE, {})
  })

  it('may let some invite, and not see the invitations of others (MSC4155)', async () => {
    const carol = await house.person('carol')
    const type = 'org.matrix.msc4155.invite_permission_config'
    await set(bob, type, { allowed_users: [alice.userId], ignored_users: ['@car*:localhost'], blocked_servers: ['*'] })
    const [open, unseen] = [await alice.createRoom(), await carol.createRoom()]
    await alice.invite(open, bob)
    await carol.invite(unseen, bob)
    const dave = await house.person('dave')
    expect(await dave.ask('POST', '/createRoom', { invite: [bob.userId] })).toMatchObject(blocked)
    const shown = Object.keys((await bob.sync()).rooms.invite)
    expect([shown.includes(open), shown.includes(unseen)]).toEqual([true, false])
    const { notifications } = await bob.call('GET', '/notifications?limit=100')
    const notified = notifications.map(({ room_id }: { room_id: string }) => room_id)
    expect([notified.includes(open), notified.includes(unseen)]).toEqual([true, false])
    await set(bob, type, {})
  })
})

describe('a user on another server', () => {
  let street: Neighbourhood
  afterAll(() => street.close())

  it('is not invited across the federation, in both versions of the request', async () => {
    street = openNeighbourhood()
    const [alpha, beta] = [await street.open(), await street.open()]
    const [inviter, target] = [await alpha.person('inviter'), await beta.person('target')]
    const body = { default_action: 'block' }
    await beta.api.call('PUT', dataAt(target.userId, STABLE), { token: target.token, body })
    for (const room_version of ['1', '11']) {
      const { room_id } = await alpha.api.call('POST', '/createRoom', { token: inviter.token, body: { room_version } })
      const answer = await alpha.api.request('POST', inRoom(room_id, '/invite'), {
        token: inviter.token,
        body: { user_id: target.userId },
      })
      expect(answer).toMatchObject({ status: 403 })
    }
    const { rooms } = await beta.api.call('GET', '/sync?timeout=0', { token: target.token })
    expect(rooms?.invite ?? {}).toEqual({})
  })
})

describe('the verdict on an invitation', () => {
  const type = 'org.matrix.msc4155.invite_permission_config'
  it.each([
    [{}, 'allow'],
    [{ blocked_users: ['@a:b'] }, 'block'],
    [{ blocked_users: ['@A:B'] }, 'block'],
    [{ blocked_users: ['@a:b'], allowed_users: ['@*:b'] }, 'allow'],
    [{ blocked_users: ['@a:b'], ignored_users: ['@a:*'] }, 'ignore'],
    [{ blocked_servers: ['b'], ignored_users: ['@x:b'] }, 'block'],
    [{ blocked_servers: ['*'], allowed_servers: ['b'] }, 'allow'],
    [{ ignored_servers: ['?'] }, 'ignore'],
    [{ blocked_users: ['@a:b'], enabled: false }, 'allow'],
    [{ blocked_users: '@a:b', blocked_servers: { b: 1 } }, 'allow'],
    [{ blocked_users: [7, null, ['@a:b']] }, 'allow'],
    [{ blocked_users: ['*'.repeat(256)] }, 'allow'],
    [{ blocked_users: [...Array<string>(1_000).fill('@x:y'), '@a:b'] }, 'allow'],
  ])('of %j is %s', (config, verdict) => {
    expect(inviteVerdict({ [type]: config }, '@a:b' as UserId)).toBe(verdict)
  })

  it('costs little for hostile globs', () => {
    const blocked_users = Array.from({ length: 1_000 }, (_, n) => `${'*a'.repeat(120)}${n}`)
    const took = cpuMs(() =>
      expect(inviteVerdict({ [type]: { blocked_users } }, `@${'a'.repeat(200)}:b` as UserId)).toBe('allow'),
    )
    expect(took).toBeLessThan(1_000)
  })
})
