import { ProtocolError } from '../../src/core/errors.ts'
import { redactContent } from '../../src/core/event/redact.ts'
import type { RoomId, UserId } from '../../src/core/ids.ts'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion } from '../../src/core/room-version.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import type { Requester } from '../../src/domain/accounts/requester.ts'
import type { Rooms } from '../../src/domain/rooms/act/rooms.ts'
import { CALM } from './network.ts'
import { memberships, type RoomView, viewRoom } from './room-view.ts'
import { type Run, said } from './run.ts'
import type { SimulatedServer } from './server.ts'

/** A room in which random users do random things. */
export interface Scene {
  readonly run: Run
  readonly version: RoomVersion
  readonly roomId: RoomId
  /** A room whose members a restricted join rule lets in. */
  readonly lobbyId: RoomId | undefined
  readonly users: readonly UserId[]
}

const LEVELS = [0, 25, 50, 100]

/** Makes a room on one of the servers, and a lobby where the version has restricted joins. */
export async function openScene(run: Run): Promise<Scene> {
  const { dice } = run
  const version = ROOM_VERSIONS[run.seed % ROOM_VERSIONS.length]!
  const servers = [...run.servers.values()]
  const users = servers.flatMap((server) => ['ann', 'ben', 'cai'].map((name) => run.user(name, server)))
  const creator = dice.pick(users)
  const lobbyId =
    version.restrictedJoins && dice.chance(0.7) ? await openLobby(run, version, creator, users) : undefined
  const isPublic = dice.chance(0.7)
  const roomId = await createRoom(run, creator, {
    preset: isPublic ? 'public_chat' : 'private_chat',
    room_version: version.id,
    invite: isPublic ? [] : users.filter((user) => user !== creator && dice.chance(0.7)),
    power_level_content_override: firstLevels(run, version, creator, users),
  })
  run.trace.push(`room version ${version.id}, made by ${creator}, ${isPublic ? 'public' : 'private'}`)
  const scene = { run, version, roomId, lobbyId, users }
  for (const user of users) if (dice.chance(0.4)) await attempt(scene, user, 'join', undefined)
  return scene
}

async function createRoom(run: Run, creator: UserId, request: Parameters<Rooms['create']>[1]): Promise<RoomId> {
  const server = run.serverOf(creator)
  const { roomId } = await server.engine.services.rooms.create(await server.as(creator), request, undefined)
  await run.relay(server, roomId)
  return roomId
}

async function openLobby(run: Run, version: RoomVersion, creator: UserId, users: readonly UserId[]): Promise<RoomId> {
  const lobbyId = await createRoom(run, creator, { preset: 'public_chat', room_version: version.id })
  const home = run.serverOf(creator)
  for (const user of users) {
    if (user === creator || !run.dice.chance(0.5)) continue
    const isThere = (await run.serversIn(run.serverOf(user), lobbyId)).size > 0
    if (isThere) await run.does(user, lobbyId, (rooms, by) => rooms.join(by, lobbyId, {}))
    else await run.doesFromOutside(user, lobbyId, 'join', home)
    await run.network.settle()
  }
  return lobbyId
}

/** Several users with power on all sides, so that they can undo what the others do. */
function firstLevels({ dice }: Run, version: RoomVersion, creator: UserId, users: readonly UserId[]): JsonObject {
  const powerful = users.filter((user) => user !== creator && dice.chance(0.4))
  const levels = Object.fromEntries(powerful.map((user) => [user, dice.pick([50, 50, 100])]))
  return {
    users: version.creatorsAreInfinite ? levels : { ...levels, [creator]: 100 },
    events: { 'm.room.power_levels': dice.pick([50, 100]), 'm.room.name': 50 },
    state_default: dice.pick([0, 50]),
    invite: dice.pick([0, 50]),
  }
}

const INSIDE = {
  message: 8,
  topic: 3,
  state: 4,
  own: 1,
  displayname: 1,
  power: 4,
  joinRule: 2,
  invite: 3,
  kick: 2,
  ban: 1.5,
  unban: 2,
  leave: 1,
  redact: 2,
} as const

const OUTSIDE = { join: 8, knock: 2, leave: 1, message: 1 } as const

/** One user does something, or tries to. */
export async function act(scene: Scene): Promise<void> {
  const { run, roomId } = scene
  const user = await someActor(scene)
  const server = run.serverOf(user)
  const view = await viewRoom(server.db, roomId)
  const isInside = view?.members.get(user)?.startsWith('join') ?? false
  const what = isInside ? run.dice.weighted(INSIDE) : run.dice.weighted(OUTSIDE)
  await attempt(scene, user, what, isInside ? view : undefined)
}

/** @param view of those who are inside */
async function attempt(
  scene: Scene,
  user: UserId,
  what: keyof typeof INSIDE | keyof typeof OUTSIDE,
  view: RoomView | undefined,
): Promise<void> {
  const { run } = scene
  const begun = run.trace.push(`${user} ${what}`) - 1
  try {
    if (view) await actInside(scene, user, view, what as keyof typeof INSIDE)
    else await actOutside(scene, user, run.serverOf(user), what as keyof typeof OUTSIDE)
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
    run.trace[begun] += `: ${error.errcode} ${error.message}`
  }
}

/** Mostly somebody who takes part. */
async function someActor({ run, roomId, users }: Scene): Promise<UserId> {
  const user = run.dice.pick(users)
  const server = run.serverOf(user)
  if (run.dice.chance(0.25)) return user
  const inside = [...(await memberships(server.db, roomId))]
    .filter(([other, membership]) => membership === 'join' && run.serverOf(other) === server)
    .map(([other]) => other)
  return inside.length === 0 ? user : run.dice.pick(inside)
}

async function actOutside(
  { run, roomId }: Scene,
  user: UserId,
  server: SimulatedServer,
  what: keyof typeof OUTSIDE,
): Promise<void> {
  const here = await run.serversIn(server, roomId)
  if (here.has(server.name)) {
    if (what === 'message') await run.say(user, roomId, 'from outside')
    else if (what === 'join') await joinFromInside(run, user, roomId, server)
    else if (what === 'leave') await run.does(user, roomId, (rooms, by) => rooms.leave(by, roomId, {}))
    else await setState(run, user, roomId, 'm.room.member', user, { membership: 'knock' })
    return
  }
  const resident = await findResident(run, roomId, server)
  if (!resident || what === 'message') return
  await run.doesFromOutside(user, roomId, what, resident)
}

/** Where no member of the own server can let the user in, another server can. */
async function joinFromInside(run: Run, user: UserId, roomId: RoomId, server: SimulatedServer): Promise<void> {
  try {
    await run.does(user, roomId, (rooms, by) => rooms.join(by, roomId, {}))
  } catch (error) {
    const isForOthers = error instanceof ProtocolError && error.errcode === 'M_UNABLE_TO_GRANT_JOIN'
    const resident = isForOthers ? await findResident(run, roomId, server) : undefined
    if (!resident) throw error
    await run.doesFromOutside(user, roomId, 'join', resident)
  }
}

/** Another server that takes itself to be in the room. */
async function findResident(run: Run, roomId: RoomId, besides: SimulatedServer): Promise<SimulatedServer | undefined> {
  for (const server of run.dice.shuffled([...run.servers.values()])) {
    if (server !== besides && (await run.serversIn(server, roomId)).has(server.name)) return server
  }
  return undefined
}

function setState(run: Run, user: UserId, roomId: RoomId, type: string, stateKey: string, content: JsonObject) {
  return run.does(user, roomId, (rooms, by) => rooms.setState(by, roomId, type, stateKey, said(content)))
}

async function actInside(scene: Scene, user: UserId, view: RoomView, what: keyof typeof INSIDE): Promise<void> {
  const { run, roomId } = scene
  const { dice } = run
  const set = (type: string, stateKey: string, content: JsonObject) =>
    setState(run, user, roomId, type, stateKey, content)
  const target = (...wanted: string[]) => {
    const found = [...view.members].filter(([, text]) => wanted.some((membership) => text.startsWith(membership)))
    return dice.pick(found.length === 0 ? scene.users : found.map(([userId]) => userId))
  }
  const to = (action: (rooms: Rooms, by: Requester, target: UserId) => Promise<void>, other: UserId) => {
    run.trace[run.trace.length - 1] += ` ${other}`
    return run.does(user, roomId, (rooms, by) => action(rooms, by, other))
  }
  const some = `${run.seed} ${dice.below(1_000_000)}`
  const actions: Record<keyof typeof INSIDE, () => Promise<unknown>> = {
    message: () => run.say(user, roomId, some),
    topic: () => set(dice.pick(['m.room.topic', 'm.room.name']), '', { topic: some, name: some }),
    state: () => set('test.state', dice.pick(['one', 'two']), { some }),
    own: () => set('test.own', user, { some }),
    displayname: () => set('m.room.member', user, { membership: 'join', displayname: some }),
    power: () => set('m.room.power_levels', '', changedLevels(scene, view)),
    joinRule: () => set('m.room.join_rules', '', someJoinRule(scene)),
    invite: () => to((rooms, by, other) => rooms.invite(by, roomId, other, {}), dice.pick(scene.users)),
    kick: () => to((rooms, by, other) => rooms.kick(by, roomId, other, {}), target('join', 'invite', 'knock')),
    ban: () => to((rooms, by, other) => rooms.ban(by, roomId, other, {}), target('join')),
    unban: () => to((rooms, by, other) => rooms.unban(by, roomId, other, {}), target('ban')),
    leave: () => run.does(user, roomId, (rooms, by) => rooms.leave(by, roomId, {})),
    redact: () => redact(scene, user, view),
  }
  await actions[what]()
}

function changedLevels({ run: { dice }, version, users }: Scene, view: RoomView): JsonObject {
  const content = view.events.get(view.state.get('m.room.power_levels ')!)?.pdu.content ?? {}
  const levels = isObject(content.users) ? content.users : {}
  const create = view.events.get(view.state.get('m.room.create ')!)!.pdu
  const others = users.filter((user) => !version.creatorsAreInfinite || user !== create.sender)
  if (dice.chance(0.7)) return { ...content, users: { ...levels, [dice.pick(others)]: dice.pick(LEVELS) } }
  return { ...content, [dice.pick(['ban', 'kick', 'redact', 'invite', 'state_default'])]: dice.pick(LEVELS) }
}

function someJoinRule({ run: { dice }, version, lobbyId }: Scene): JsonObject {
  const rule = dice.pick([...version.joinRules, 'public'])
  const allow = lobbyId === undefined ? [] : [{ type: 'm.room_membership', room_id: lobbyId }]
  return rule.includes('restricted') ? { join_rule: rule, allow } : { join_rule: rule }
}

/**
 * Redacts an event whose meaning for the rules stays the same. Where a version's redaction takes away what the rules look at (the
 * level for inviting, who let a user in, what is redacted), those who saw the event before and those who did not judge others differently: a flaw
 * of those versions that no server can mend.
 */
async function redact({ run, roomId, version }: Scene, user: UserId, view: RoomView): Promise<void> {
  const targets = [...view.events.values()].filter(({ isInTimeline, type, pdu, redactedBy }) => {
    if (!isInTimeline || redactedBy !== null || type === 'm.room.create') return false
    if (type === 'm.room.redaction' && version.authRulesCoverRedaction) return false
    const isForRules = pdu.state_key !== undefined && FOR_RULES.has(type)
    return !isForRules || meaningOf(redactContent(version, type, pdu.content)) === meaningOf(pdu.content)
  })
  if (targets.length === 0) return
  const target = run.dice.pick(targets).id
  run.trace[run.trace.length - 1] += ` ${target}`
  await run.does(user, roomId, (rooms, by) => rooms.redact(by, roomId, target, said({}), run.transaction()))
}

const FOR_RULES = new Set(['m.room.member', 'm.room.power_levels', 'm.room.join_rules'])

function meaningOf({ displayname: _, ...content }: JsonObject): string {
  return encodeCanonical(content)
}

/** Lets servers part and meet again while users act. */
export async function play(scene: Scene, actions: number): Promise<void> {
  const { run } = scene
  const { dice, network } = run
  for (let done = 0; done < actions; done++) {
    if (network.isParted ? dice.chance(0.12) : dice.chance(0.08)) {
      if (network.isParted) network.heal()
      else network.part(someParting(run))
      run.trace.push(network.isParted ? 'parted' : 'healed')
    }
    await act(scene)
    await network.pass(dice.below(600))
  }
  network.heal()
  network.conditions = CALM
}

function someParting({ dice, names }: Run): (typeof names)[] {
  const [alone, ...others] = dice.shuffled(names)
  return dice.chance(0.3) ? [[alone!], ...others.map((name) => [name])] : [[alone!], others]
}
