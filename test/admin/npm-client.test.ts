import { LogLevel, LogService, MatrixClient, type SynapseAdminApis, SynapseRoomProperty } from 'matrix-bot-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, createRoom, join } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { type Office, openOffice } from './office.ts'

let office: Office
let alice: Account
let garden: string
let tool: SynapseAdminApis

beforeAll(async () => {
  LogService.muteModule('MatrixHttpClient')
  LogService.setLevel(LogLevel.ERROR)
  office = await openOffice({ registration: { enabled: true } })
  alice = await office.person('alice')
  for (const name of ['bob', 'carol']) await office.person(name)
  garden = await createRoom(office.api, alice.token, { name: 'Garden', preset: 'public_chat' })
  await join(office.api, office.boss.token, garden)
  tool = new MatrixClient(office.server.baseUrl, office.boss.token).adminApis.synapse
})
afterAll(() => office.close())

/** All that the client of this package from the registry offers, as it is. */
describe('the administration client of matrix-bot-sdk', () => {
  it('says who administers', async () => {
    expect([await tool.isSelfAdmin(), await tool.isAdmin(alice.userId)]).toEqual([true, false])
    const other = new MatrixClient(office.server.baseUrl, alice.token).adminApis.synapse
    expect(await other.isSelfAdmin()).toBe(false)
  })

  it('lists accounts, page by page and all', async () => {
    const first = await tool.listUsers(undefined, 2)
    expect([first.users.length, first.total]).toEqual([2, 4])
    const second = await tool.listUsers(first.next_token, 2)
    expect(second.users.length).toBe(2)
    const names: string[] = []
    for await (const { name } of tool.listAllUsers({ limit: 1 })) names.push(name)
    expect(names.toSorted()).toEqual(['alice', 'bob', 'boss', 'carol'].map((name) => `@${name}:localhost`))
    expect((await tool.listUsers(undefined, 5, 'caro')).users.map(({ name }) => name)).toEqual(['@carol:localhost'])
  })

  it('makes an account and changes it', async () => {
    const made = await tool.upsertUser('@dave:localhost', { password: 'a long password 42', displayname: 'Dave' })
    expect(made.displayname).toBe('Dave')
    await tool.upsertUser('@dave:localhost', { displayname: 'David', admin: true })
    expect(await tool.getUser('@dave:localhost')).toMatchObject({ displayname: 'David', admin: true })
    await tool.upsertUser('@dave:localhost', { deactivated: true })
    expect(await tool.getUser('@dave:localhost')).toMatchObject({ deactivated: true })
  })

  it('lists rooms, and reads the state of one', async () => {
    const { rooms, total_rooms: total } = await tool.listRooms(
      'gard',
      undefined,
      10,
      SynapseRoomProperty.JoinedMembers,
      true,
    )
    expect([total, rooms[0]?.room_id, rooms[0]?.name]).toEqual([1, garden, 'Garden'])
    const types = (await tool.getRoomState(garden)).map(({ type }: { type: string }) => type)
    expect(types).toContain('m.room.create')
  })

  it('gives itself a room’s rights', async () => {
    await tool.makeRoomAdmin(garden, office.boss.userId)
    const levels = await office.api.call('GET', `/rooms/${encodeURIComponent(garden)}/state/m.room.power_levels`, {
      token: alice.token,
    })
    expect(levels.users[office.boss.userId]).toBe(100)
  })

  it('makes, reads, changes and removes a registration token', async () => {
    const { token } = await tool.createRegistrationToken({ uses_allowed: 1 })
    expect(await tool.getRegistrationToken(token)).toMatchObject({ token, uses_allowed: 1, completed: 0 })
    await tool.updateRegistrationToken(token, { uses_allowed: 5 })
    expect((await tool.listRegistrationTokens(true)).map(({ uses_allowed }) => uses_allowed)).toEqual([5])
    await tool.deleteRegistrationToken(token)
    expect(await tool.getRegistrationToken(token)).toBeNull()
  })

  it('removes a room, and sees when that is done', async () => {
    await tool.deleteRoom(garden)
    await waitUntil('the room to be gone', async () => {
      const [deletion] = await tool.getDeleteRoomState(garden)
      return deletion?.status === 'complete'
    })
    expect((await tool.listRooms()).total_rooms).toBe(0)
  })
})
