import { pino } from 'pino'
import { loadConfig } from '../../src/config/load.ts'
import { buildEvent } from '../../src/core/event/build.ts'
import type { EventReference } from '../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { type ReadJson, readExactJson } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { type KeyRing, NOBODY } from '../../src/domain/rooms/receive/federation-queries.ts'
import { createUsers } from '../../src/domain/users.ts'
import { NO_PEERS } from '../../src/outbound/peers.ts'
import { openRoomEngine, type RoomEngine } from '../../test/support/room-engine.ts'
import { openRoomDatabase } from './room-database.ts'

/** What another server has to tell of a room, in the order in which it came about. */
export interface History {
  /** Sends the next events. @param told of the time each transaction took, in milliseconds */
  send(events: number, perTransaction: number, told?: (ms: number) => void): Promise<void>
}

/** A room engine over a real database, and another server that is in its rooms. */
export interface ReceivingServer {
  history(shape: 'linear' | 'forked', events: number): Promise<History>
  remove(): Promise<void>
}

const VERSION = roomVersion('11')!
const HERE = 'here.test' as ServerName
const THERE = 'there.test' as ServerName
const FIRST_MOMENT = 1_700_000_000_000
/** Of ten events in a row, those that are made side by side. */
const SIDE_BY_SIDE = [5, 6]

export async function openReceivingServer(): Promise<ReceivingServer> {
  const database = await openRoomDatabase()
  const { db } = database
  const key = signingKeyFromSeed('ed25519:bench', Buffer.alloc(32, 1))
  const theirs = signingKeyFromSeed('ed25519:bench', Buffer.alloc(32, 2))
  const users = createUsers({ db })
  let moment = FIRST_MOMENT
  let drawn = 0
  const engine = await openRoomEngine({
    base: {
      db,
      users,
      clock: { now: () => ++moment },
      random: { bytes: (count) => Buffer.alloc(count, `${++drawn}.`) },
      log: pino({ level: 'error' }),
    },
    config: loadConfig({ values: { server_name: HERE }, directory: '.' }).config,
    signingKey: key,
    serverKeys: keyRingOf(theirs),
    peers: NO_PEERS,
    queries: NOBODY,
  })
  const userId = `@maker:${HERE}` as UserId
  const userNid = (await users.intern([userId])).get(userId)!
  const maker = { userId, userNid, deviceId: 'BENCH', tokenNid: 1, isGuest: false }

  return {
    async history(shape, events) {
      const { roomId } = await engine.services.rooms.create(
        maker,
        { preset: 'public_chat', room_version: VERSION.id, power_level_content_override: { state_default: 0 } },
        undefined,
      )
      const texts = await writeHistory(engine, roomId, theirs, shape, events)
      return historyOf(engine, roomId, texts)
    },
    async remove() {
      await engine.close()
      await database.remove()
    },
  }
}

function keyRingOf({ keyId, publicKey }: SigningKey): KeyRing {
  return { keysOf: async () => [{ keyId, publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }] }
}

function historyOf({ receiver }: RoomEngine, roomId: RoomId, texts: readonly string[]): History {
  let sent = 0
  return {
    async send(events, perTransaction, told) {
      for (const end = sent + events; sent < end; ) {
        const part = texts.slice(sent, Math.min(end, sent + perTransaction))
        sent += part.length
        const begun = performance.now()
        const outcomes = await receiver.receive(THERE, roomId, part.map(parsed))
        told?.(performance.now() - begun)
        const refused = outcomes.find(({ kind }) => kind !== 'accepted')
        if (refused) throw new Error(`an event was not accepted: ${JSON.stringify(refused)}`)
      }
    },
  }
}

function parsed(text: string): ReadJson {
  return readExactJson(text)
}

/** A member joins from there; what they do after that is made ahead of time, so that only its arrival is measured. */
async function writeHistory(
  { receiver, resident }: RoomEngine,
  roomId: RoomId,
  key: SigningKey,
  shape: 'linear' | 'forked',
  events: number,
): Promise<string[]> {
  const sender = `@member:${THERE}` as UserId
  const templateOf = async (membership: string) => {
    const wanted = { type: 'm.room.member', sender, stateKey: sender, content: { membership } } as const
    return (await resident.template(roomId, wanted)).event
  }
  const template = await templateOf('join')
  let depth = template.depth as number
  let prev = template.prev_events as EventReference[]
  let cited = template.auth_events as EventReference[]
  const build = (type: string, content: object, stateKey?: string): { id: EventId; json: string } => {
    const { eventId, json } = buildEvent(
      VERSION,
      {
        type,
        sender,
        room_id: roomId,
        content: { ...content },
        origin_server_ts: FIRST_MOMENT + depth,
        depth: ++depth,
        prev_events: prev,
        auth_events: cited,
        ...(stateKey === undefined ? {} : { state_key: stateKey }),
      },
      THERE,
      key,
    )
    return { id: eventId, json }
  }
  const joined = build('m.room.member', { membership: 'join' }, sender)
  const [outcome] = await receiver.receive(THERE, roomId, [parsed(joined.json)])
  if (outcome?.kind !== 'accepted') throw new Error(`the join was not accepted: ${JSON.stringify(outcome)}`)
  // Who leaves is judged by what judges whatever else they send.
  cited = (await templateOf('leave')).auth_events as EventReference[]
  prev = [joined.id]
  const texts: string[] = []
  let beside: EventId[] = []
  for (let n = 0; n < events; n++) {
    const isBeside = shape === 'forked' && SIDE_BY_SIDE.includes(n % 10)
    const { id, json } =
      shape === 'forked'
        ? build('x.state', { n }, `key ${n % 7}`)
        : build('m.room.message', { msgtype: 'm.text', body: `message ${n} of a history` })
    texts.push(json)
    if (isBeside) beside.push(id)
    if (!isBeside || beside.length === SIDE_BY_SIDE.length) {
      prev = isBeside ? beside : [id]
      beside = []
    }
  }
  return texts
}
