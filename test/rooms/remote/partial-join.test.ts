import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import type { EventId, ServerName, UserId } from '../../../src/core/ids.ts'
import { isObject } from '../../../src/core/json.ts'
import { createKeyedQueue } from '../../../src/core/keyed-queue.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { createHeldEvents } from '../../../src/domain/federation/held-events.ts'
import type { Received } from '../../../src/domain/rooms/receive/received.ts'
import { getHeldReceipts, holdReceipts, removeHeldReceipts } from '../../../src/store/federation/held-receipts.ts'
import { insertHeld } from '../../../src/store/rooms/partial-state-rooms.ts'
import { waitUntil } from '../../support/wait.ts'
import { Besieged, EVIL, idsIn } from '../besieged.ts'
import { Forge, type ForgedRoom } from '../forge.ts'
import type { ForgedState } from '../forged-state.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const OTHER = 'other.test' as ServerName
const LAZY = { filter: { room: { state: { lazy_load_members: true } } } }
const MEMBER = 'm.room.member '

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

type StateAnswer = (of: string) => ForgedRoom

/** Who was asked for a state. */
let asked: string[] = []
let answered: (answer: StateAnswer) => void
let answer: Promise<StateAnswer>

/** Who is asked for a state from now on lets us wait. */
function keepWaiting(): void {
  asked = []
  answer = new Promise((resolve) => {
    answered = resolve
  })
  home.server.peers.state = async (of) => {
    asked.push(of)
    return (await answer)(of)
  }
}

/** Those who wait for their turn again are not waited for by the next test. */
afterEach(async () => {
  for (const partialState of home.server.engine.partialStateRooms.all())
    await home.server.engine.partialStateRooms.abandon(partialState)
})

interface Partial {
  readonly forge: Forge
  readonly state: ForgedState
  readonly join: EventId
  readonly received: Received
}

const withoutMembers = (state: ForgedState): ForgedState =>
  new Map([...state].filter(([key]) => !key.startsWith(MEMBER)))

/** Ann comes into a room of a creator, a guest and others, and is told of none of them. */
async function enter(name: string, furnish: (forge: Forge) => void = () => {}, version = '12'): Promise<Partial> {
  const forge = Forge.open(roomVersion(version)!, name, CREATOR)
  forge.member(GUEST, 'join')
  furnish(forge)
  home.answers(forge.answers())
  const state = forge.states.get(forge.latest!)!
  const join = forge.member(home.user('ann'), 'join', { state })
  const cited = forge.authChain([...withoutMembers(state).values(), join])
  const shown = {
    state: forge.raw(withoutMembers(state).values()),
    authChain: forge.raw(cited),
    ...{ areMembersOmitted: true, servers: [EVIL, OTHER] },
  }
  const { processJoin } = home.server.engine
  const received = await home.inRun(() => processJoin(EVIL, forge.version, forge.roomId, forge.raw([join])[0]!, shown))
  return { forge, state, join, received }
}

const startResync = () => home.server.startResync()

async function filled({ forge }: Partial): Promise<void> {
  await waitUntil('all members', async () => {
    const view = await home.view(forge.roomId)
    return home.server.engine.partialStateRooms.of(view.roomNid) === undefined ? true : undefined
  })
}

it.each(['1', '6', '11', '12'])(
  'a room that is joined without its members has them later, in room version %s',
  async (version) => {
    keepWaiting()
    startResync()
    const room = await enter(`room-${version}`, () => {}, version)
    const { forge, join, state } = room
    expect(room.received).toEqual({ kind: 'accepted', eventId: join })
    const nothing = await home.sync('ann')
    expect(nothing.rooms?.join?.[forge.roomId]).toBeUndefined()
    const lazy = await home.sync('ann', undefined, LAZY)
    expect(idsIn(lazy.rooms.join[forge.roomId].timeline)).toEqual([join])
    const said = await home.say('ann', forge.roomId, 'here already')
    answered(() => forge.shown(state))
    await filled(room)
    const view = await home.view(forge.roomId)
    expect(new Map(view.state)).toEqual(new Map([...state, [`${MEMBER}${home.user('ann')}`, join]]))
    await home.audit(forge.roomId)
    const whole = (await home.sync('ann', nothing.next_batch)).rooms.join[forge.roomId]
    expect(idsIn(whole.timeline)).toEqual([join, said])
    expect(idsIn(whole.state).toSorted()).toEqual([...state.values()].toSorted())
    const later = (await home.sync('ann', lazy.next_batch, LAZY)).rooms.join[forge.roomId]
    expect(idsIn(later.timeline)).toEqual([said])
    expect(later.summary['m.joined_member_count']).toBe(3)
    // Whoever was told all is told nothing more, and so is whoever comes after a restart.
    const after = await home.sync('ann', (await home.sync('ann')).next_batch)
    expect(after.rooms?.join?.[forge.roomId]).toBeUndefined()
    await home.server.restart()
    const again = (await home.sync('ann', nothing.next_batch)).rooms.join[forge.roomId]
    expect(idsIn(again.state)).toEqual(idsIn(whole.state))
    await forge.catchUp(home.server)
    expect(await home.kinds(forge, [forge.say(GUEST, 'welcome')])).toEqual(['accepted'])
  },
)

it('whom the join is judged by counts at once, also where only the invited come in', async () => {
  keepWaiting()
  startResync()
  const room = await enter('invited', (forge) => {
    forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'invite' })
    forge.make({
      ...{ type: 'm.room.member', sender: CREATOR, state_key: home.user('ann') },
      content: { membership: 'invite' },
    })
  })
  expect(room.received.kind).toBe('accepted')
  answered(() => room.forge.shown(room.state))
  await filled(room)
  expect((await home.view(room.forge.roomId)).members.get(home.user('ann'))).toMatch(/^join/)
  await home.audit(room.forge.roomId)
})

it('what others send before is refused for now, and nobody is kicked whom we do not know', async () => {
  keepWaiting()
  startResync()
  const { forge, state } = await enter('early')
  await expect(home.kinds(forge, [forge.say(GUEST, 'early')])).rejects.toMatchObject({ status: 503 })
  const kick = home.does('ann', (rooms, by) => rooms.kick(by, forge.roomId, GUEST, {}))
  const verdict = expect(kick).rejects.toMatchObject({
    errcode: 'M_FORBIDDEN',
    message: expect.stringContaining('power'),
  })
  answered(() => forge.shown(state))
  await verdict
})

it('leaving ends it, and coming back is told all', async () => {
  keepWaiting()
  startResync()
  const { forge, state } = await enter('left')
  await waitUntil('the first try', () => (asked.length > 0 ? true : undefined))
  await home.does('ann', (rooms, by) => rooms.leave(by, forge.roomId, {}))
  const { roomNid } = await home.view(forge.roomId)
  expect(home.server.engine.partialStateRooms.of(roomNid)?.holdsEvents).toBe(false)
  await forge.catchUp(home.server)
  const back = forge.member(home.user('ann'), 'join', { state })
  const { processJoin } = home.server.engine
  const takeJoin = (partial: boolean) =>
    home.inRun(() =>
      processJoin(EVIL, forge.version, forge.roomId, forge.raw([back])[0]!, {
        ...(partial ? { ...forge.shown(withoutMembers(state)), areMembersOmitted: true } : forge.shown(state)),
      }),
    )
  await expect(takeJoin(true)).rejects.toMatchObject({ status: 503 })
  expect((await takeJoin(false)).kind).toBe('accepted')
  expect((await home.view(forge.roomId)).members.get(GUEST)).toMatch(/^join/)
  await home.audit(forge.roomId)
})

it('a process that ends before, in the middle or right after goes on', async () => {
  keepWaiting()
  const room = await enter('crash')
  await home.server.restart()
  keepWaiting()
  startResync()
  await waitUntil('a try', () => (asked.length > 0 ? true : undefined))
  await home.server.restart()
  let isBroken = false
  keepWaiting()
  answered(() => {
    isBroken = true
    // Half of it is stored, and then the process is gone.
    const { state, authChain } = room.forge.shown(room.state)
    return { state: { length: state.length, at: (n: number) => (n < 3 ? state[n] : hang()) } as never, authChain }
  })
  const hang = (): never => {
    throw new Error('gone')
  }
  startResync()
  await waitUntil('half', () => (isBroken ? true : undefined))
  await home.server.restart()
  keepWaiting()
  answered(() => room.forge.shown(room.state))
  startResync()
  await filled(room)
  const { roomNid, members } = await home.view(room.forge.roomId)
  // Written, and not noted.
  await home.server.db.query('UPDATE room_filling SET filled_at = NULL WHERE room_nid = $1 RETURNING 1 AS one', [
    roomNid,
  ])
  await home.server.restart()
  startResync()
  await filled(room)
  expect(new Map((await home.view(room.forge.roomId)).members)).toEqual(new Map(members))
  await home.audit(room.forge.roomId)
})

const ANN = `@ann:home.test` as UserId

it.each<[string, (room: Partial, honest: ForgedRoom) => ForgedRoom]>([
  ['nothing', () => ({ state: [], authChain: [] })],
  ['no members, once more', ({ forge, state }) => forge.shown(withoutMembers(state))],
  [
    'another room',
    () => {
      const foreign = Forge.open(roomVersion('12')!, 'foreign', CREATOR)
      return foreign.shown(foreign.states.get(foreign.latest!)!)
    },
  ],
  [
    'less than what is known',
    ({ forge, state }) => forge.shown(new Map([...state].filter(([key]) => !key.startsWith('m.room.join_rules')))),
  ],
  [
    'two for one key',
    ({ forge, state }, honest) => ({
      ...honest,
      state: [
        ...honest.state,
        ...forge.raw([forge.member(GUEST, 'join', { state, content: { displayname: 'twice' } })]),
      ],
    }),
  ],
])('%s is no state: another server is asked', async (name, lie) => {
  keepWaiting()
  startResync()
  const room = await enter(`lie-${name}`)
  const honest = room.forge.shown(room.state)
  answered((of) => (of === EVIL ? lie(room, honest) : honest))
  await filled(room)
  expect(asked.slice(-2)).toEqual([EVIL, OTHER])
  expect([...(await home.view(room.forge.roomId)).members.keys()].toSorted()).toEqual([ANN, CREATOR, GUEST].toSorted())
  await home.audit(room.forge.roomId)
})

it('what is forged among members is left out, and our own join stays what it is', async () => {
  keepWaiting()
  const room = await enter('forged', (forge) => {
    forge.member(`@late:${OTHER}` as UserId, 'join', { prev: [forge.latest!] })
  })
  const { forge, state, join } = room
  const before = forge.member(ANN, 'leave', { state, prev: [forge.latest!] })
  const unsigned = JSON.parse(forge.texts.get(state.get(`${MEMBER}@late:${OTHER}`)!)!)
  unsigned.signatures = {}
  const stranger = forge.member(`@never:${EVIL}` as UserId, 'ban', { state })
  answered(() => {
    const honest = forge.shown(new Map([...state].filter(([key]) => !key.includes('@late'))))
    const more = forge.raw([before, stranger])
    return { ...honest, state: [...honest.state, ...more, { value: unsigned, offence: undefined }] }
  })
  startResync()
  await filled(room)
  const view = await home.view(forge.roomId)
  expect(view.state.get(`${MEMBER}${ANN}`)).toBe(join)
  expect([...view.members.keys()].toSorted()).toEqual([CREATOR, GUEST, ANN].toSorted())
  expect(view.members.get(ANN)).toMatch(/^join/)
  await home.audit(forge.roomId)
})

const MOD = `@mod:${OTHER}` as UserId

/** Nobody gives any members any more, and this waits for them. */
async function withHeld(
  { forge }: Partial,
  kick: EventId,
  { origin = OTHER, raw = forge.texts.get(kick)!, refused = true, chain = forge.authChain([kick]) } = {},
): Promise<void> {
  const { server } = home
  server.peers.state = async () => {
    throw new ProtocolError(refused ? 'M_FORBIDDEN' : 'M_UNKNOWN', 'no', { status: refused ? 403 : 502 })
  }
  server.peers.eventAuth = async () => forge.raw(chain)
  const { roomNid } = await home.view(forge.roomId)
  await server.db.tx((tx) => insertHeld(tx, roomNid, origin, [raw]))
  await home.inRun(async () => startResync())
  const partialState = server.engine.partialStateRooms.of(roomNid)!
  await waitUntil('a round', () => (partialState.failures > 0 || !partialState.holdsEvents ? true : undefined))
}

const annIn = async ({ forge }: Partial) => (await home.view(forge.roomId)).members.get(ANN)?.split(' ')[0]

/** A room with a moderator of whom we are told nothing; nothing is asked for it yet. */
async function moderated(name: string, version: string, furnish: (forge: Forge) => void = () => {}): Promise<Partial> {
  await home.server.restart()
  const withLevels = (forge: Forge) => {
    forge.member(MOD, 'join')
    forge.set(CREATOR, 'm.room.power_levels', { invite: 0, users: { ...powerOfCreator(forge), [MOD]: 50 } })
    furnish(forge)
  }
  return enter(name, withLevels, version)
}

const powerOfCreator = ({ version }: Forge) => (version.creatorsAreInfinite ? {} : { [CREATOR]: 100 })

it.each(['1', '6', '11', '12'])(
  'where all refuse us a kick is judged by what it cites, in version %s',
  async (version) => {
    const room = await moderated(`kick-${version}`, version)
    const { next_batch: since } = await home.sync('ann', undefined, LAZY)
    const kick = room.forge.member(ANN, 'leave', { sender: MOD })
    home.answers(room.forge.answers({ events: async () => [] }), OTHER)
    await withHeld(room, kick)
    expect(await annIn(room)).toBe('leave')
    const { leave } = (await home.sync('ann', since, LAZY)).rooms
    expect(idsIn(leave[room.forge.roomId].timeline)).toEqual([kick])
    const { roomNid } = await home.view(room.forge.roomId)
    // Removed once the kick is in, by a transaction of its own.
    await waitUntil(
      'nothing to wait',
      async () => (await home.server.db.query('SELECT 1 FROM held_event WHERE room_nid = $1', [roomNid])).length === 0,
    )
    await home.audit(room.forge.roomId)
    await home.server.restart()
    expect(await annIn(room)).toBe('leave')
    await home.inRun(async () => startResync())
    await waitUntil('it to be let be', () =>
      home.server.engine.partialStateRooms.of(roomNid)?.holdsEvents === true ? undefined : true,
    )
  },
)

it('who came, and came to power, while all that waits may put out whom they like, though nobody answers', async () => {
  await home.server.restart()
  const room = await enter('newcomer')
  const { forge } = room
  const { roomNid } = await home.view(forge.roomId)
  const came = forge.member(MOD, 'join')
  const levels = forge.set(CREATOR, 'm.room.power_levels', {
    invite: 0,
    users: { ...powerOfCreator(forge), [MOD]: 50 },
  })
  const kick = forge.member(ANN, 'ban', { sender: MOD })
  await home.server.db.tx((tx) => insertHeld(tx, roomNid, OTHER, [forge.texts.get(came)!]))
  await home.server.db.tx((tx) => insertHeld(tx, roomNid, EVIL, [forge.texts.get(levels)!]))
  home.answers(forge.answers({ events: async () => [] }), OTHER)
  await withHeld(room, kick, { chain: [] })
  expect(await annIn(room)).toBe('ban')
  await home.audit(forge.roomId)
})

/** What each changes of a room, and of a kick that would hold. */
const UNFOUNDED: readonly [
  string,
  {
    readonly furnish?: (forge: Forge) => void
    readonly make?: (room: Partial) => EventId
    readonly held?: (room: Partial, kick: EventId) => Parameters<typeof withHeld>[2]
  },
][] = [
  [
    'one whose signature is of another event',
    {
      held: ({ forge }, kick) => {
        const pdu = JSON.parse(forge.texts.get(kick)!)
        return { raw: encodeCanonical({ ...pdu, content: { ...pdu.content, membership: 'ban' }, depth: 1 }) }
      },
    },
  ],
  [
    'one that its sender has not signed',
    {
      held: ({ forge }, kick) => ({
        raw: encodeCanonical({ ...JSON.parse(forge.texts.get(kick)!), signatures: {} }),
      }),
    },
  ],
  ['one that another server sends than its sender is of', { held: () => ({ origin: EVIL }) }],
  [
    'one by a member without the power',
    {
      make: ({ forge }) => forge.member(ANN, 'leave', { sender: GUEST }),
      held: () => ({ origin: EVIL }),
    },
  ],
  [
    'one by a moderator of the past, by the levels of then',
    {
      furnish: (forge) => forge.set(CREATOR, 'm.room.power_levels', { invite: 0, users: powerOfCreator(forge) }),
      make: ({ forge, state, join }) => {
        const [past] = [...forge.events].find(
          ([, { type, content }]) =>
            type === 'm.room.power_levels' && isObject(content.users) && content.users[MOD] === 50,
        )!
        const auth = [state.get('m.room.create ')!, past, state.get(`${MEMBER}${MOD}`)!, join]
        const isCited = forge.version.createIsAuthEvent
        return forge.member(ANN, 'leave', { sender: MOD, auth: isCited ? auth : auth.slice(1) })
      },
    },
  ],
  [
    'one from before the join',
    {
      furnish: (forge) => {
        forge.member(ANN, 'join')
        forge.member(ANN, 'leave', { sender: MOD })
      },
      make: ({ forge }) =>
        [...forge.events].find(([, { state_key, sender }]) => state_key === ANN && sender === MOD)![0],
    },
  ],
  [
    'one by somebody who was banned, and says to have joined',
    {
      furnish: (forge) => forge.member(MOD, 'ban', { sender: CREATOR }),
      make: ({ forge, state, join }) => {
        const before = new Map([...state, [`${MEMBER}${ANN}`, join]])
        const back = forge.member(MOD, 'join', { state: before })
        return forge.member(ANN, 'leave', { sender: MOD, state: new Map([...before, [`${MEMBER}${MOD}`, back]]) })
      },
    },
  ],
  [
    'one of which nobody has what it cites',
    {
      held: ({ forge }) => {
        home.answers(forge.answers({ events: async () => [] }), OTHER)
        return { chain: [] }
      },
    },
  ],
  ['one that holds, while the servers are only silent', { held: () => ({ refused: false }) }],
]

it.each(UNFOUNDED)('puts nobody out: %s', async (name, { furnish, make, held }) => {
  const room = await moderated(`stays-${name}`, '11', furnish)
  const kick = make?.(room) ?? room.forge.member(ANN, 'leave', { sender: MOD })
  home.answers(room.forge.answers(), OTHER)
  await withHeld(room, kick, held?.(room, kick))
  expect(await annIn(room)).toBe('join')
  const { roomNid } = await home.view(room.forge.roomId)
  expect(await home.server.db.query('SELECT 1 FROM held_event WHERE room_nid = $1', [roomNid])).toHaveLength(1)
  await home.audit(room.forge.roomId)
})

const THIRD = `@third:${OTHER}` as UserId
type Take = Parameters<typeof createHeldEvents>[0]['take']
const NO_CAP = { count: 1_000, bytes: 1_000_000 }

it.each([
  ['events of a server', 'ofServer', 'count', 3],
  ['bytes of a server', 'ofServer', 'bytes', 3],
  ['events of the room', 'ofRoom', 'count', 4],
  ['bytes of the room', 'ofRoom', 'bytes', 4],
] as const)(
  'beyond the cap for %s what comes is refused, and had by what builds on it',
  async (name, of, unit, cap) => {
    await home.server.restart()
    const room = await enter(`cap-${name}`, (forge) => forge.member(THIRD, 'join'))
    const { forge, state } = room
    home.answers(forge.answers(), OTHER)
    const said = (user: UserId) => forge.say(user, 'x'.repeat(400))
    const ids = [GUEST, GUEST, THIRD, GUEST, GUEST, GUEST].map(said)
    const [one, two, third, three, four, last] = ids as [EventId, EventId, EventId, EventId, EventId, EventId]
    const most = unit === 'count' ? cap : (cap + 0.5) * Buffer.byteLength(forge.texts.get(one)!)
    const caps = { ofRoom: NO_CAP, ofServer: NO_CAP, [of]: { ...NO_CAP, [unit]: most } }
    const openHeld = () => {
      const { db, engine } = home.server
      const take: Take = (...from) => home.inRun(() => engine.receiver.receive(...from))
      const receipts = { takeSome: async () => false }
      return createHeldEvents({
        db,
        partialStateRooms: engine.partialStateRooms,
        caps,
        take,
        receipts,
        turns: createKeyedQueue(),
      })
    }
    let held = openHeld()
    const send = async (origin: ServerName, sent: readonly EventId[]): Promise<(string | undefined)[]> => {
      const view = (await home.server.engine.registry.get(forge.roomId))!
      const outcomes = (await held.hold(origin, view, view.partialState!, forge.raw(sent)))!
      expect(outcomes.map(({ eventId }) => eventId)).toEqual(sent)
      return outcomes.map(({ error }) => error)
    }
    const refused = expect.stringContaining('too much waits')
    expect(await send(EVIL, [one, two])).toEqual([undefined, undefined])
    expect(await send(OTHER, [third])).toEqual([undefined])
    // All of a transaction, or nothing; also of one that comes after a restart.
    expect(await send(EVIL, [three, four])).toEqual([refused, refused])
    await home.server.restart()
    held = openHeld()
    expect(await send(EVIL, [three, four])).toEqual([refused, refused])
    expect(await send(EVIL, [last])).toEqual([undefined])
    home.server.peers.state = async () => forge.shown(state)
    const { resync } = home.server.engine
    resync.onWhole(held.takeAll)
    await home.inRun(async () => resync.start())
    await filled(room)
    const view = await home.view(forge.roomId)
    expect(ids.map((id) => home.standing(view, id))).toEqual(ids.map(() => 'accepted'))
    await home.audit(forge.roomId)
  },
)

it('so much of what was read waits of a server, and in a room; of each user the newest', async () => {
  const { db } = home.server
  const roomNid = 1_000_000
  const hold = (origin: ServerName, name: string, json: string) =>
    db.tx((tx) =>
      holdReceipts(tx, { roomNid, origin }, [{ user_id: `@${name}:${origin}` as UserId, thread_id: '', json }], {
        ...{ ofRoom: 3, ofServer: 2 },
      }),
    )
  await hold(EVIL, 'one', 'old')
  await hold(EVIL, 'one', 'new')
  await hold(EVIL, 'two', 'x')
  await hold(EVIL, 'three', 'one too many of the server')
  await hold(OTHER, 'one', 'y')
  await hold(OTHER, 'two', 'one too many of the room')
  const rows = await getHeldReceipts(db, roomNid, 10)
  expect(rows.map(({ json }) => json).toSorted()).toEqual(['new', 'x', 'y'])
  // What came while these were taken stays.
  await hold(EVIL, 'one', 'never: the room is full')
  await db.tx((tx) =>
    removeHeldReceipts(
      tx,
      roomNid,
      rows.map((row) => ({ ...row, json: 'older' })),
    ),
  )
  expect(await getHeldReceipts(db, roomNid, 10)).toHaveLength(3)
  await db.tx((tx) => removeHeldReceipts(tx, roomNid, rows))
  expect(await getHeldReceipts(db, roomNid, 10)).toEqual([])
})
