import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let owner: Person
let members = 0

beforeAll(async () => {
  house = await openHouse()
  owner = await house.person('owner')
})
afterAll(() => house.close())

const someone = (): Promise<Person> => house.person(`member-${++members}`)

/** A room that lets in who is in the lobby. */
async function restrictedRoom(version: string, rule = 'restricted'): Promise<{ lobby: string; room: string }> {
  const lobby = await owner.createRoom({ preset: 'public_chat', room_version: version })
  const allow = [{ type: 'm.room_membership', room_id: lobby }]
  const initial = [{ type: 'm.room.join_rules', content: { join_rule: rule, allow } }]
  return { lobby, room: await owner.createRoom({ room_version: version, initial_state: initial }) }
}

it.each(['8', '10', '12'])(
  'a member of the named room is let in by who may invite, in room version %s',
  async (version) => {
    const { lobby, room } = await restrictedRoom(version)
    const [inside, outside] = [await someone(), await someone()]
    await inside.join(lobby)
    await inside.join(room)
    const member = await inside.call('GET', inRoom(room, `/state/m.room.member/${encodeURIComponent(inside.userId)}`))
    expect(member).toMatchObject({ membership: 'join', join_authorised_via_users_server: owner.userId })

    const refused = await outside.ask('POST', inRoom(room, '/join'), {})
    expect([refused.status, refused.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    await owner.invite(room, outside)
    await outside.join(room)
  },
)

it('a member of the named room is let in where one may also knock', async () => {
  const { lobby, room } = await restrictedRoom('11', 'knock_restricted')
  const inside = await someone()
  await inside.join(lobby)
  await inside.join(room)
})

it('who was banned, or has left the named room, is not let in', async () => {
  const { lobby, room } = await restrictedRoom('12')
  const [banned, gone] = [await someone(), await someone()]
  await banned.join(lobby)
  await gone.join(lobby)
  await owner.call('POST', inRoom(room, '/ban'), { user_id: banned.userId })
  await gone.leave(lobby)
  for (const person of [banned, gone]) {
    const refused = await person.ask('POST', inRoom(room, '/join'), {})
    expect([refused.status, refused.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  }
})

it('nobody is let in where no member may invite, or by a room that nobody here is in', async () => {
  const { lobby, room } = await restrictedRoom('10')
  const inside = await someone()
  await inside.join(lobby)
  const allow = [{ type: 'm.room_membership', room_id: '!elsewhere:remote.test' }]
  await owner.setState(room, 'm.room.join_rules', { join_rule: 'restricted', allow })
  const unknown = await inside.ask('POST', inRoom(room, '/join'), {})
  expect([unknown.status, unknown.body.errcode]).toEqual([400, 'M_UNABLE_TO_AUTHORISE_JOIN'])

  const known = [{ type: 'm.room_membership', room_id: lobby }]
  await owner.setState(room, 'm.room.join_rules', { join_rule: 'restricted', allow: known })
  await owner.setState(room, 'm.room.power_levels', { users: { [owner.userId]: 100 }, invite: 50 })
  const plain = await someone()
  await owner.invite(room, plain)
  await plain.join(room)
  await owner.leave(room)
  const powerless = await inside.ask('POST', inRoom(room, '/join'), {})
  expect([powerless.status, powerless.body.errcode]).toEqual([400, 'M_UNABLE_TO_GRANT_JOIN'])
})
