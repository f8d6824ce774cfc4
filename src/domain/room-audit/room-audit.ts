import { membershipOf } from '../../core/event/content.ts'
import { isUserId } from '../../core/ids.ts'
import { roomVersion } from '../../core/room-version.ts'
import { forEachState, type StateMap } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { getChainParents, getStateKeys } from '../../store/events/state.ts'
import { unfilledChain } from '../../store/rooms/partial-state-rooms.ts'
import { getCheckpointPoints, getEventNids, readCheckpoint, readStateLog } from '../../store/rooms/room-report.ts'
import { getMembers, getRooms, type Membership, type RoomRow } from '../../store/rooms/rooms.ts'
import { StateKeys } from '../rooms/room/state-keys.ts'
import { type AuditedRoom, differences, EventAudit, type Finding } from './event-audit.ts'
import type { KnownKeys } from './event-checks.ts'
import { createKnownEvents, type KnownEvents } from './known-events.ts'
import { ReplayedLog } from './replayed-log.ts'
import { type AuditTally, emptyTally } from './tally.ts'

export interface AuditOptions {
  /** A transaction with one snapshot of the database. */
  readonly db: Reader
  readonly roomNid: number
  readonly knownKeys: KnownKeys
  found(finding: Finding): void
  progress(events: number, of: number): void
}

const EVENTS_AT_ONCE = 200
const MEMBERSHIPS: readonly Membership[] = ['join', 'invite', 'knock', 'ban', 'leave']

/** Checks a room from scratch: every event, the state log, the current state and the members. Only reads. */
export async function auditRoom(options: AuditOptions): Promise<AuditTally> {
  const { db, roomNid, found } = options
  const tally = emptyTally()
  const [row] = await getRooms(db, [roomNid])
  const nids = await getEventNids(db, roomNid)
  const room = await readRoom(db, row!)
  const events = createKnownEvents(db)
  const audit = new EventAudit({ db, room, events, knownKeys: options.knownKeys, tally })
  for (const what of room.log.flaws()) found({ eventId: undefined, what })
  for (let at = 0; at < nids.length; at += EVENTS_AT_ONCE) {
    for (const finding of await audit.check(nids.slice(at, at + EVENTS_AT_ONCE))) found(finding)
    options.progress(Math.min(at + EVENTS_AT_ONCE, nids.length), nids.length)
  }
  const flaws = [
    ...(await checkCheckpoints(db, room, tally)),
    ...(await checkHead(room, row!, audit, events)),
    ...(await checkMembers(db, room, row!, events, tally)),
  ]
  for (const what of flaws) found({ eventId: undefined, what })
  return tally
}

async function readRoom(db: Reader, row: RoomRow): Promise<AuditedRoom> {
  const version = roomVersion(row.room_version)
  if (!version) throw new Error(`room version ${row.room_version} is not known to this Hearth`)
  const [keys, changes, parents, unfilled] = await Promise.all([
    getStateKeys(db, [row.room_nid]),
    readStateLog(db, row.room_nid),
    getChainParents(db, row.room_nid),
    unfilledChain(db, row.room_nid),
  ])
  const log = new ReplayedLog(changes, parents)
  const stateKeys = new StateKeys(keys.get(row.room_nid))
  return { nid: row.room_nid, id: row.room_id, version, keys: stateKeys, log, unfilledChain: unfilled }
}

async function checkCheckpoints(db: Reader, room: AuditedRoom, tally: AuditTally): Promise<string[]> {
  const wrong: string[] = []
  for (const point of await getCheckpointPoints(db, room.nid)) {
    tally.checkpoints++
    const name = `the checkpoint at ${point.chain}:${point.seq}`
    const replayed = room.log.stateAt(point)
    if (!replayed) wrong.push(`${name} is of a place that the state log does not have`)
    else {
      const stored = await readCheckpoint(db, room.nid, point)
      wrong.push(...differences(room.keys, stored, replayed).map((what) => `${name} ${what}`))
    }
  }
  return wrong
}

/** The current state must be the resolution of the states after the forward extremities. */
async function checkHead(room: AuditedRoom, row: RoomRow, audit: EventAudit, events: KnownEvents): Promise<string[]> {
  const current = room.log.stateAt({ chain: row.state_chain, seq: row.state_seq })
  if (!current) return ['the room stands at a place that its state log does not have']
  const merged = row.extremities.slice(0, row.merged ?? row.extremities.length)
  const loaded = await events.byNid(row.extremities)
  const wrong = row.extremities
    .filter((nid) => loaded.get(nid)?.hasPlace !== true || loaded.get(nid)?.standing !== undefined)
    .map((nid) => `its forward extremity ${loaded.get(nid)?.id ?? nid} is no accepted event`)
  const states = merged.map((nid) => loaded.get(nid)).map((event) => event && room.log.stateAt(event.pointAfter))
  if (states.some((state) => !state)) return [...wrong, 'a forward extremity stands nowhere in the state log']
  const resolved = await audit.resolve(states as StateMap[])
  return [...wrong, ...differences(room.keys, current, resolved).map((what) => `the current state ${what}`)]
}

/** The table of members must agree with the current state, and must say of nobody else that they are members. */
async function checkMembers(
  db: Reader,
  room: AuditedRoom,
  row: RoomRow,
  events: KnownEvents,
  tally: AuditTally,
): Promise<string[]> {
  const current = room.log.stateAt({ chain: row.state_chain, seq: row.state_seq })
  if (!current) return []
  const memberNids = new Map<string, number>()
  forEachState(current, (keyId, nid) => {
    const { type, stateKey } = room.keys.nameOf(keyId)
    if (type === 'm.room.member' && isUserId(stateKey)) memberNids.set(stateKey, nid)
  })
  const listed = new Map(
    (await getMembers(db, row.room_nid, MEMBERSHIPS)).map((member) => [member.user_id as string, member]),
  )
  const wrong: string[] = []
  for (const [userId, member] of listed) {
    if (!memberNids.has(userId) && member.membership !== 'leave')
      wrong.push(`${userId} is listed as ${member.membership}, and is not in the current state`)
  }
  const loaded = await events.byNid([...memberNids.values()])
  for (const [userId, nid] of memberNids) {
    tally.members++
    const right = membershipOf(loaded.get(nid))
    const is = listed.get(userId)?.membership
    if (is !== right) wrong.push(`${userId} is listed as ${is ?? 'nobody'}, and by the current state is ${right}`)
  }
  return wrong
}
