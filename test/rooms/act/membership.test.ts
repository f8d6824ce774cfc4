import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type Answer, type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
/** Made the room. */
let host: Person
/** Is the one whose membership changes. */
let guest: Person

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
  guest = await house.person('guest')
})

afterAll(() => house.close())

type Membership = 'invite' | 'join' | 'leave' | 'ban' | 'knock'

/** What a row of the table comes to: another membership, none, or a refusal. */
type Outcome = 'changes' | 'stays' | 'refused'

interface Row {
  readonly from: Exclude<Membership, 'knock'>
  readonly to: Membership
  readonly by: 'host' | 'guest'
  readonly outcome: Outcome
  readonly meaning: string
}

/** The table of the client interface, "States and transitions", with a row for each who may bring one about. */
const TABLE: readonly Row[] = [
  { from: 'invite', to: 'invite', by: 'host', outcome: 'stays', meaning: 'no change' },
  { from: 'invite', to: 'join', by: 'guest', outcome: 'changes', meaning: 'user joined' },
  { from: 'invite', to: 'leave', by: 'guest', outcome: 'changes', meaning: 'invite rejected' },
  { from: 'invite', to: 'leave', by: 'host', outcome: 'changes', meaning: 'invite revoked' },
  { from: 'invite', to: 'ban', by: 'host', outcome: 'changes', meaning: 'user banned' },
  { from: 'join', to: 'invite', by: 'host', outcome: 'refused', meaning: 'must never happen' },
  { from: 'join', to: 'join', by: 'guest', outcome: 'stays', meaning: 'no change without a new name' },
  { from: 'join', to: 'leave', by: 'guest', outcome: 'changes', meaning: 'user left' },
  { from: 'join', to: 'leave', by: 'host', outcome: 'changes', meaning: 'kicked' },
  { from: 'join', to: 'ban', by: 'host', outcome: 'changes', meaning: 'kicked and banned' },
  { from: 'leave', to: 'invite', by: 'host', outcome: 'changes', meaning: 'new invitation' },
  { from: 'leave', to: 'join', by: 'guest', outcome: 'changes', meaning: 'user joined' },
  { from: 'leave', to: 'leave', by: 'guest', outcome: 'stays', meaning: 'no change' },
  { from: 'leave', to: 'ban', by: 'host', outcome: 'changes', meaning: 'banned' },
  { from: 'ban', to: 'invite', by: 'host', outcome: 'refused', meaning: 'must never happen' },
  { from: 'ban', to: 'join', by: 'guest', outcome: 'refused', meaning: 'must never happen' },
  { from: 'ban', to: 'leave', by: 'host', outcome: 'changes', meaning: 'unbanned' },
  { from: 'ban', to: 'leave', by: 'guest', outcome: 'refused', meaning: 'nobody unbans themselves' },
  { from: 'ban', to: 'ban', by: 'host', outcome: 'stays', meaning: 'no change' },
]

const OTHERS: Readonly<Record<Membership, string>> = {
  invite: '/invite',
  leave: '/kick',
  ban: '/ban',
  join: '/join',
  knock: '/knock',
}

/** The operation that brings about a membership. */
function operate({ from, to, by }: Row, room: string): Promise<Answer> {
  if (by === 'guest') return guest.ask('POST', inRoom(room, to === 'join' ? '/join' : '/leave'), {})
  const operation = from === 'ban' && to === 'leave' ? '/unban' : OTHERS[to]
  return host.ask('POST', inRoom(room, operation), { user_id: guest.userId })
}

const memberPath = (room: string) => inRoom(room, `/state/m.room.member/${encodeURIComponent(guest.userId)}`)

/** The same by setting state. */
function setState({ to, by }: Row, room: string): Promise<Answer> {
  return (by === 'guest' ? guest : host).ask('PUT', memberPath(room), { membership: to })
}

async function roomWith(from: Row['from']): Promise<string> {
  const room = await host.createRoom({ preset: 'public_chat' })
  if (from === 'invite') await host.invite(room, guest)
  else await guest.join(room)
  if (from === 'leave') await guest.leave(room)
  if (from === 'ban') await host.call('POST', inRoom(room, '/ban'), { user_id: guest.userId })
  return room
}

const memberIn = (room: string): Promise<Json> => host.call('GET', `${memberPath(room)}?format=event`)

describe.each([
  ['by its operation', operate],
  ['by state', setState],
])('membership changed %s', (_, change) => {
  it.each(TABLE)('$from -> $to by the $by $outcome: $meaning', async (row) => {
    const room = await roomWith(row.from)
    const before = await memberIn(room)
    const { status, body } = await change(row, room)
    const after = await memberIn(room)
    if (row.outcome === 'refused') expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    else expect(status).toBe(200)
    if (row.outcome === 'changes') {
      expect(after.content.membership).toBe(row.to)
      expect(after.unsigned.prev_content.membership).toBe(row.from)
      expect(after.sender).toBe(row.by === 'host' ? host.userId : guest.userId)
    } else {
      expect(after.content.membership).toBe(row.from)
    }
    if (change === operate && row.outcome !== 'changes') expect(after.event_id).toBe(before.event_id)
  })

  it.each(['invite', 'join', 'leave', 'ban'] as const)('%s -> knock is not for this room', async (from) => {
    const room = await roomWith(from)
    const row: Row = { from, to: 'knock', by: 'guest', outcome: 'refused', meaning: '' }
    const { status } = await setState(row, room)
    expect(status).toBe(403)
    expect((await memberIn(room)).content.membership).toBe(from)
  })
})

describe('membership', () => {
  it('join -> join carries a new name or picture', async () => {
    const room = await roomWith('join')
    const content = { membership: 'join', displayname: 'Guest of honour', avatar_url: 'mxc://localhost/a' }
    await guest.call('PUT', memberPath(room), content)
    const { content: now, unsigned } = await memberIn(room)
    expect(now).toEqual(content)
    expect(unsigned.prev_content.membership).toBe('join')
  })

  it('is joined by oneself alone', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const forced = await host.ask('PUT', memberPath(room), { membership: 'join' })
    expect([forced.status, forced.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    const closed = await host.createRoom({ preset: 'private_chat' })
    const uninvited = await guest.ask('POST', inRoom(closed, '/join'), {})
    expect([uninvited.status, uninvited.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })

  it('of others takes power, and of those in the room alone', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const other = await house.person('other')
    for (const person of [guest, other]) await person.join(room)
    const target = { user_id: other.userId, reason: 'because' }
    for (const operation of ['/kick', '/ban', '/unban']) {
      expect((await guest.ask('POST', inRoom(room, operation), target)).status).toBe(403)
    }
    const unbanned = await host.ask('POST', inRoom(room, '/unban'), target)
    expect([unbanned.status, unbanned.body.errcode]).toEqual([403, 'M_BAD_STATE'])
    await host.call('POST', inRoom(room, '/kick'), target)
    expect((await host.ask('POST', inRoom(room, '/kick'), target)).status).toBe(403)
    const { content } = await host.call('GET', inRoom(room, `/state/m.room.member/${other.userId}?format=event`))
    expect(content).toEqual({ membership: 'leave', reason: 'because' })
  })

  it('leaves no trace of those whom it was refused', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const stranger = { user_id: '@unheard-of:elsewhere.test' }
    for (const operation of ['/invite', '/kick', '/ban', '/unban']) {
      expect((await guest.ask('POST', inRoom(room, operation), stranger)).status).toBe(403)
    }
    const seen = () => house.server.database.db.query('SELECT FROM matrix_user WHERE user_id = $1', [stranger.user_id])
    expect(await seen()).toHaveLength(0)
    await host.call('POST', inRoom(room, '/ban'), stranger)
    expect(await seen()).toHaveLength(1)
  })

  it.each(['x', '', '@', '@:localhost:99999', 'x:localhost'])('is that of a user, not of "%s"', async (nobody) => {
    const room = await host.createRoom({ preset: 'public_chat' })
    for (const membership of ['invite', 'ban', 'leave', 'join']) {
      const path = inRoom(room, `/state/m.room.member/${encodeURIComponent(nobody)}`)
      const { status } = await host.ask('PUT', path, { membership })
      expect([membership, status >= 400 && status < 500]).toEqual([membership, true])
    }
  })

  it('is forgotten once it is over, and not before', async () => {
    const room = await roomWith('join')
    const forget = () => guest.ask('POST', inRoom(room, '/forget'), {})
    expect(await forget()).toMatchObject({ status: 400, body: { errcode: 'M_UNKNOWN' } })
    await guest.leave(room)
    expect(await forget()).toEqual({ status: 200, body: {} })
    expect((await guest.ask('GET', inRoom(room, '/state'))).status).toBe(403)
    await guest.join(room)
    expect((await guest.ask('GET', inRoom(room, '/state'))).status).toBe(200)
  })
})
