import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ServerName, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL } from '../../rooms/besieged.ts'
import { Forge, type ForgedRoom } from '../../rooms/forge.ts'
import type { ForgedState } from '../../rooms/forged-state.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { clientOf } from './besieged-client.ts'
import { bodiesOf, Connection, FORMS, type Request, type SyncClient, stateOf } from './connection.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const OTHER = 'other.test' as ServerName
const MEMBER = 'm.room.member '
const LIST = { range: [0, 99], limit: 5 } as const
const WHOLE: Request = { lists: { all: { ...LIST, state: [['m.room.member', '*']] } } }
const LAZY: Request = { lists: { all: { ...LIST, lazy: true } } }
const NAMED: Request = { lists: { all: { ...LIST, state: [['m.room.create', '']] } } }

let home: Besieged
let ann: SyncClient
let conn = 0
let release: (members: ForgedRoom) => void
beforeAll(async () => {
  home = await Besieged.open()
  ann = await clientOf(home, 'ann')
})
afterAll(() => home.close())
afterEach(async () => {
  const { partialStateRooms } = home.server.engine
  for (const partialState of partialStateRooms.all()) await partialStateRooms.abandon(partialState)
})

interface Entered {
  readonly forge: Forge
  readonly state: ForgedState
}

/** Ann comes into a room and is told of no members: who is asked for them waits. */
async function enter(name: string): Promise<Entered> {
  const answer = new Promise<ForgedRoom>((resolve) => {
    release = resolve
  })
  home.server.peers.state = async () => answer
  home.server.startResync()
  const forge = Forge.open(roomVersion('11')!, `${name}-${++conn}`, CREATOR)
  forge.member(GUEST, 'join')
  home.answers(forge.answers())
  const state = forge.states.get(forge.latest!)!
  const known: ForgedState = new Map([...state].filter(([key]) => !key.startsWith(MEMBER)))
  const join = forge.member(home.user('ann'), 'join', { state })
  const shown = {
    ...{ state: forge.raw(known.values()), authChain: forge.raw(forge.authChain([...known.values(), join])) },
    ...{ areMembersOmitted: true, servers: [EVIL, OTHER] },
  }
  const { processJoin } = home.server.engine
  const received = await home.inRun(() => processJoin(EVIL, forge.version, forge.roomId, forge.raw([join])[0]!, shown))
  expect(received.kind).toBe('accepted')
  return { forge, state }
}

/** The members come. */
async function fill({ forge, state }: Entered): Promise<void> {
  const { roomNid } = await home.view(forge.roomId)
  release(forge.shown(state))
  await waitUntil('all members', async () =>
    home.server.engine.partialStateRooms.of(roomNid) === undefined ? true : undefined,
  )
}

const membersOf = (section: Json): string[] => stateOf(section).filter((key) => key.startsWith('m.room.member|'))
const connect = (form: (typeof FORMS)[number]) => new Connection(ann, form, `partial${++conn}`)

describe.each(FORMS)('a room whose members are still to come, in the %s form', (form) => {
  it('is shown at once to whoever loads members lazily, and to the others once it is whole', async () => {
    const whole = connect(form)
    const count = (await whole.next(WHOLE)).lists.all.count
    const entered = await enter('lists')
    const { roomId: room } = entered.forge
    const [lazy, named] = [connect(form), connect(form)]
    const nothing = await whole.next(WHOLE)
    expect([nothing.lists.all.count, nothing.rooms[room]]).toEqual([count, undefined])
    const subscribed = connect(form)
    const wish = { rooms: { [room]: { limit: 5, state: [['*', '*']] as const } } }
    expect((await subscribed.next(wish)).rooms[room]).toBeUndefined()
    const first = (await lazy.next(LAZY)).rooms[room]
    expect([first.initial, membersOf(first)]).toEqual([true, [`m.room.member|${ann.userId}`]])
    expect((await named.next(NAMED)).rooms[room].initial).toBe(true)
    await home.say('ann', room, 'anybody here?')
    const live = (await lazy.next(LAZY)).rooms[room]
    expect([bodiesOf(live), live.initial]).toEqual([['anybody here?'], undefined])
    await fill(entered)
    const filled = (await lazy.next(LAZY)).rooms[room]
    expect([filled.joined_count, filled.initial, membersOf(filled)]).toEqual([3, undefined, expect.any(Array)])
    const now = await whole.next(WHOLE)
    expect([now.lists.all.count, now.rooms[room].initial]).toEqual([count + 1, true])
    expect(membersOf(now.rooms[room])).toHaveLength(3)
    expect(membersOf((await subscribed.next(wish)).rooms[room])).toHaveLength(3)
    for (const [client, request] of [
      [whole, WHOLE],
      [lazy, LAZY],
      [subscribed, wish],
    ] as const) {
      await client.next(request)
      expect((await client.next(request)).rooms).toEqual({})
    }
    expect((await named.next(NAMED)).rooms[room].joined_count).toBe(3)
  })

  it('ends a wait when it is whole, also of a client that did not have it', async () => {
    const entered = await enter('held')
    const { roomId: room } = entered.forge
    const [whole, lazy] = [connect(form), connect(form)]
    await whole.next(WHOLE)
    await lazy.next(LAZY)
    const waiting = [whole.next({ ...WHOLE, timeout: 60_000 }), lazy.next({ ...LAZY, timeout: 60_000 })]
    await fill(entered)
    const [ofWhole, ofLazy] = await Promise.all(waiting)
    expect(membersOf(ofWhole!.rooms[room])).toHaveLength(3)
    expect(ofLazy!.rooms[room].joined_count).toBe(3)
  })

  it('is told over a restart, to a client that last asked before', async () => {
    const entered = await enter('restart')
    const { roomId: room } = entered.forge
    const [whole, lazy] = [connect(form), connect(form)]
    await whole.next(WHOLE)
    await lazy.next(LAZY)
    await fill(entered)
    await home.server.restart()
    expect(membersOf((await whole.next(WHOLE)).rooms[room])).toHaveLength(3)
    expect((await lazy.next(LAZY)).rooms[room].joined_count).toBe(3)
  })
})
