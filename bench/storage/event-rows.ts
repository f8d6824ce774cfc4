import { randomBytes } from 'node:crypto'
import { buildEvent } from '../../src/core/event/build.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { StatePoint } from '../../src/store/events/state.ts'

const SERVER = 'example.org' as ServerName
const NOBODY = '@user0000000:example.org' as UserId

const newId = () => `$${randomBytes(32).toString('base64url')}` as EventId

/** JSON as large as that of real events: signed once, then given to everybody. */
function sample(type: string, content: object, stateKey?: string): string {
  const version = roomVersion('12')!
  const draft = {
    type,
    sender: NOBODY,
    room_id: `!${randomBytes(32).toString('base64url')}` as RoomId,
    content: { ...content },
    origin_server_ts: 1_700_000_000_000,
    depth: 12_345,
    prev_events: [newId()],
    auth_events: [newId(), newId()],
    ...(stateKey === undefined ? {} : { state_key: stateKey }),
  }
  return buildEvent(version, draft, SERVER, signingKeyFromSeed('ed25519:a_12345678', randomBytes(32))).json
}

const MESSAGE = sample('m.room.message', { msgtype: 'm.text', body: 'Good morning, everyone: the kettle is on.' })
const MEMBER = sample('m.room.member', { membership: 'join', displayname: 'Somebody' }, NOBODY)

export const userName = (number: number): UserId => `@user${String(number).padStart(7, '0')}:example.org` as UserId

export interface NewEvent {
  readonly eventNid: number
  readonly roomNid: number
  readonly roomPos: number
  readonly notifiable: number
  readonly before: StatePoint
  /** Set for state events. */
  readonly keyId: number | undefined
  readonly replaces: number
  /** The room's current state afterwards, where that is not the state after the event. */
  readonly current: StatePoint | undefined
}

export function eventRow(event: NewEvent) {
  const isState = event.keyId !== undefined
  return {
    event_nid: event.eventNid,
    room_nid: event.roomNid,
    room_pos: event.roomPos,
    sender_nid: 1 + (event.eventNid % 1_000),
    origin_server_ts: 1_700_000_000_000 + event.eventNid,
    notifiable: event.notifiable,
    replaces_nid: event.replaces === 0 ? null : event.replaces,
    redacted_by: null,
    auth_content: null,
    txn_token: isState ? null : 17,
    state_chain: event.before.chain,
    state_seq: event.before.seq,
    key_id: event.keyId ?? null,
    event_id: newId(),
    type: isState ? 'm.room.member' : 'm.room.message',
    txn_id: isState ? null : `m${1_700_000_000_000 + event.eventNid}.${event.eventNid % 10}`,
    standing: null,
    reason: null,
    stream_pos: null,
    current_chain: event.current?.chain ?? null,
    current_seq: event.current?.seq ?? null,
    auth_nids: isState ? [1, 2, 3] : null,
    has_relations: false,
    json: (isState ? MEMBER : MESSAGE).replaceAll(NOBODY, userName(event.keyId ?? event.eventNid % 1_000)),
  }
}
