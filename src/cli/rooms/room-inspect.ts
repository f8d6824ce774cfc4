import type { Reader } from '../../store/db/db.ts'
import { getEvents } from '../../store/events/events.ts'
import { getAliasesOfRoom } from '../../store/rooms/aliases.ts'
import { findPartialState, type PartialStateRow } from '../../store/rooms/partial-state-rooms.ts'
import { countByStanding, getGaps, getLogSize } from '../../store/rooms/room-report.ts'
import { countMembers, getRooms } from '../../store/rooms/rooms.ts'
import { entry } from '../report-entry.ts'
import { describeEvent, printEvent } from './room-inspect-event.ts'

interface InspectOptions {
  readonly event?: string | undefined
  readonly state?: boolean | undefined
  readonly json?: boolean | undefined
}

/** Describes a room, or one of its events, for people or for programs. */
export async function inspectRoom(reader: Reader, roomNid: number, options: InspectOptions): Promise<string> {
  if (options.event === undefined) {
    const room = await describeRoom(reader, roomNid)
    return options.json ? JSON.stringify(room, undefined, 2) : printRoom(room)
  }
  const event = await describeEvent(reader, roomNid, options.event, options.state ?? false)
  return options.json ? JSON.stringify(event, undefined, 2) : printEvent(event)
}

type RoomReport = Awaited<ReturnType<typeof describeRoom>>

async function describeRoom(reader: Reader, roomNid: number) {
  const [row] = await getRooms(reader, [roomNid])
  const [aliases, members, standings, missing, log, extremities, partialState] = await Promise.all([
    getAliasesOfRoom(reader, roomNid),
    countMembers(reader, [roomNid]),
    countByStanding(reader, roomNid),
    getGaps(reader, roomNid),
    getLogSize(reader, roomNid),
    getEvents(reader, row!.extremities),
    findPartialState(reader, roomNid),
  ])
  return {
    room_id: row!.room_id,
    room_version: row!.room_version,
    aliases: aliases.map(({ alias }) => alias),
    members: Object.fromEntries(members.map(({ membership, count }) => [membership, count])),
    ...(partialState === undefined || partialState.filled_at !== null
      ? {}
      : { members_to_come: describePartialState(partialState) }),
    events: Object.fromEntries(standings),
    depth: row!.depth,
    missing_events: missing,
    forward_extremities: extremities.map((event) => ({
      event_id: event.event_id,
      type: event.type,
      sent: new Date(event.origin_server_ts).toISOString(),
    })),
    state: { at: `${row!.state_chain}:${row!.state_seq}`, ...log },
  }
}

/** Explains why most members are missing. */
function describePartialState({ since, resident, failures, last_failure }: PartialStateRow) {
  return {
    since: new Date(since).toISOString(),
    through: resident,
    failures,
    ...(last_failure === null ? {} : { last_failure }),
  }
}

function printPartialState(
  room: RoomReport,
  { since, through, failures, last_failure }: ReturnType<typeof describePartialState>,
): string[] {
  const isLeft = room.members.join === undefined
  const tried =
    failures === 0 ? 'no server has failed' : `tried in vain ${number(failures)} times; the last time: ${last_failure}`
  const state = isLeft ? 'was left before most could be fetched; in it' : 'most are still to be fetched,'
  return [`${state} since ${since}, when ${through} let us in; ${tried}`]
}

const number = (value: number): string => value.toLocaleString('en')

const counts = (of: { readonly [name: string]: number }): string =>
  Object.entries(of)
    .map(([name, count]) => `${number(count)} ${name}`)
    .join(', ') || 'none'

function printRoom(room: RoomReport): string {
  const { state } = room
  return [
    `${room.room_id}, room version ${room.room_version}`,
    entry('aliases', room.aliases.length === 0 ? ['none'] : room.aliases),
    entry('members', [
      counts(room.members),
      ...(room.members_to_come ? printPartialState(room, room.members_to_come) : []),
    ]),
    entry('events', [counts(room.events)]),
    entry('depth', [BigInt(room.depth).toLocaleString('en')]),
    entry(
      'extremities',
      room.forward_extremities.map(({ event_id, type, sent }) => `${event_id}  ${type}  ${sent}`),
    ),
    entry('missing', room.missing_events.length === 0 ? ['nothing'] : room.missing_events),
    entry('state', [
      `at ${state.at}; ${number(state.changes)} changes, ${number(state.branches)} branches, ${number(state.checkpoints)} checkpoints`,
    ]),
  ].join('\n')
}
