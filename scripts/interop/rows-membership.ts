import type { Json } from '../../test/support/api.ts'
import { bothWays, meet, type Row } from './row.ts'
import { expect, expectRefusal, membership, until, untilHeard, untilMember, untilSameState } from './seen.ts'
import type { Side } from './sides.ts'

let aliases = 0

const privately = (host: Side, version: string, body: object = {}) =>
  host.person.createRoom({ preset: 'private_chat', room_version: version, name: 'By the fire', ...body })

async function invite(host: Side, guest: Side, version: string): Promise<string> {
  const room = await privately(host, version)
  await host.person.to('invite', room, guest.person.userId)
  const { invite_state } = await until(`the invitation on ${guest.label}`, () => guest.person.synced(room, 'invite'))
  const name = invite_state.events.find((event: { type: string }) => event.type === 'm.room.name')
  expect('the invitation says what the room is called', name?.content.name === 'By the fire')
  return room
}

const isGone = (guest: Side, room: string) =>
  until(
    `no invitation any more on ${guest.label}`,
    async () => (await guest.person.synced(room, 'invite')) === undefined,
  )

export const membershipRows: readonly Row[] = [
  ...bothWays('{guest} joins a room of {host} by its alias', async (host, guest, version) => {
    const room_alias_name = `room-${aliases++}`
    const body = { preset: 'public_chat', room_version: version, room_alias_name, name: 'By the fire' }
    const room = await host.person.createRoom(body)
    const joined = await guest.person.join(`#${room_alias_name}:${host.name}`)
    expect('the alias leads to the room', joined === room)
    await untilMember(host, room, guest, 'join')
    const { name } = await guest.person.state(room, 'm.room.name')
    expect('the guest sees the name of the room', name === 'By the fire')
    await untilSameState(room, host, guest)
  }),
  ...bothWays('{guest} joins a room of {host} by its id, leaves, and joins again', async (host, guest, version) => {
    const room = await meet(host, guest, version)
    await guest.person.leave(room)
    await untilMember(host, room, guest, 'leave')
    await host.person.say(room, 'while you were away')
    await guest.person.join(room, host.name)
    await untilMember(host, room, guest, 'join')
    await host.person.say(room, 'welcome back')
    await untilHeard(guest, room, 'welcome back')
    await untilSameState(room, host, guest)
  }),
  ...bothWays('{host} invites, {guest} accepts', async (host, guest, version) => {
    const room = await invite(host, guest, version)
    await guest.person.join(room)
    await untilMember(host, room, guest, 'join')
    await guest.person.say(room, 'here I am')
    await untilHeard(host, room, 'here I am')
    await untilSameState(room, host, guest)
  }),
  ...bothWays('{host} invites, {guest} declines', async (host, guest, version) => {
    const room = await invite(host, guest, version)
    await guest.person.leave(room)
    await isGone(guest, room)
    await untilMember(host, room, guest, 'leave')
  }),
  ...bothWays('{host} invites and revokes the invitation', async (host, guest, version) => {
    const room = await invite(host, guest, version)
    await host.person.to('kick', room, guest.person.userId)
    await isGone(guest, room)
    await expectRefusal('joining without the invitation', 'M_FORBIDDEN', guest.person.join(room, host.name))
  }),
  ...bothWays('{host} kicks a user of {guest}, who comes back', async (host, guest, version) => {
    const room = await meet(host, guest, version)
    await host.person.to('kick', room, guest.person.userId)
    await untilMember(guest, room, guest, 'leave')
    await guest.person.join(room, host.name)
    await untilMember(host, room, guest, 'join')
    await untilSameState(room, host, guest)
  }),
  ...bothWays('{host} bans a user of {guest}, and unbans them', async (host, guest, version) => {
    const room = await meet(host, guest, version)
    await host.person.to('ban', room, guest.person.userId)
    await until(`the ban on ${guest.label}`, async () => {
      const { timeline, state } = (await guest.person.synced(room, 'leave')) ?? {}
      const events: Json[] = [...(timeline?.events ?? []), ...(state?.events ?? [])]
      return events.some((event) => event.state_key === guest.person.userId && event.content.membership === 'ban')
    })
    await expectRefusal('joining where one is banned', 'M_FORBIDDEN', guest.person.join(room, host.name))
    await host.person.to('unban', room, guest.person.userId)
    await until('the way back', () =>
      guest.person.join(room, host.name).then(
        () => true,
        () => false,
      ),
    )
    expect('the guest is in', (await membership(host.person, room, guest.person)) === 'join')
    await untilSameState(room, host, guest)
  }),
  ...bothWays(
    '{guest} knocks on a room of {host}, is invited and joins',
    async (host, guest, version) => {
      const content = { join_rule: 'knock' }
      const room = await privately(host, version, {
        initial_state: [{ type: 'm.room.join_rules', state_key: '', content }],
      })
      const via = encodeURIComponent(host.name)
      await guest.person.call('POST', `/knock/${encodeURIComponent(room)}?server_name=${via}&via=${via}`, {})
      await untilMember(host, room, guest, 'knock')
      await host.person.to('invite', room, guest.person.userId)
      await until('the invitation', () => guest.person.synced(room, 'invite'))
      await guest.person.join(room)
      await untilMember(host, room, guest, 'join')
    },
    ['9', '10', '11', '12'],
  ),
  ...bothWays(
    '{guest} joins a room of {host} that is restricted to members of another room',
    async (host, guest, version) => {
      const circle = await meet(host, guest, version)
      const content = { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: circle }] }
      const room = await privately(host, version, {
        initial_state: [{ type: 'm.room.join_rules', state_key: '', content }],
      })
      await guest.person.join(room, host.name)
      await untilMember(host, room, guest, 'join')
      await untilSameState(room, host, guest)
    },
    ['9', '10', '11', '12'],
  ),
]
