import { joinAuthoriserOf, signedInviteOf } from '../event/content.ts'
import { ALLOWED, type Pdu, type Verdict } from '../event/format.ts'
import type { RoomVersion } from '../room-version.ts'
import { type Clause, rejectBy } from './clauses.ts'

/** Identifies a piece of a room's state. */
export type StateKeyPair = readonly [type: string, stateKey: string]

/** The parts of an event that select its auth events. A draft has them already. */
export interface Authorisable extends Pick<Pdu, 'type' | 'sender' | 'content'> {
  readonly state_key?: string | undefined
}

const JUDGED_BY_JOIN_RULES: ReadonlySet<unknown> = new Set(['join', 'invite', 'knock'])

/** The state that an event's `auth_events` must refer to, if the room has it (server-server API, "Auth events selection"). */
export function authEventKeys(version: RoomVersion, event: Authorisable): readonly StateKeyPair[] {
  if (event.type === 'm.room.create') return []
  const keys: StateKeyPair[] = version.createIsAuthEvent ? [['m.room.create', '']] : []
  keys.push(['m.room.power_levels', ''], ['m.room.member', event.sender])
  if (event.type === 'm.room.member' && event.state_key !== undefined) addMemberKeys(version, event, keys)
  return keys
}

function addMemberKeys(version: RoomVersion, event: Authorisable, keys: StateKeyPair[]): void {
  const { content, sender, state_key: target } = event
  const { membership } = content
  if (target !== undefined && target !== sender) keys.push(['m.room.member', target])
  if (JUDGED_BY_JOIN_RULES.has(membership)) keys.push(['m.room.join_rules', ''])
  const token = membership === 'invite' ? signedInviteOf(content)?.token : undefined
  if (typeof token === 'string') keys.push(['m.room.third_party_invite', token])
  const authoriser = membership === 'join' && version.restrictedJoins ? joinAuthoriserOf(content) : undefined
  if (authoriser !== undefined && authoriser !== sender && authoriser !== target)
    keys.push(['m.room.member', authoriser])
}

/** An event in the `auth_events` of another. */
export interface CitedEvent {
  readonly pdu: Pdu
  readonly isRejected: boolean
}

/**
 * The rule about an event's own `auth_events` (rule 2; rule 3 in room version 12), for events of other servers.
 *
 * @param cited all events in `auth_events`
 */
export function checkAuthEvents(version: RoomVersion, event: Pdu, cited: readonly CitedEvent[]): Verdict {
  if (event.type === 'm.room.create') return ALLOWED
  const reject = (clause: Clause, { pdu }: CitedEvent, what: string) =>
    rejectBy(version, clause, `The event cites an auth event of type ${pdu.type} that ${what}.`)
  // 1. No two entries for the same type and state key.
  const twice = cited.find((each, index) => cited.findIndex((other) => areSameState(other, each)) < index)
  if (twice) return reject('auth-events.duplicate', twice, 'it cites already')
  // 2. Only entries of the auth events selection.
  const wanted = authEventKeys(version, event)
  const unselected = cited.find((each) => !wanted.some((key) => isAt(each, key)))
  if (unselected) return reject('auth-events.unselected', unselected, 'does not belong there')
  // 3. No rejected events.
  const rejected = cited.find(({ isRejected }) => isRejected)
  if (rejected) return reject('auth-events.rejected', rejected, 'was rejected')
  // 4. The create event must be among them, unless the room id implies it.
  if (version.createIsAuthEvent && !cited.some((each) => isAt(each, CREATE))) {
    return rejectBy(version, 'auth-events.no-create', "The event does not cite the room's create event.")
  }
  // 5. All events must be of the same room.
  const foreign = cited.find(({ pdu }) => pdu.room_id !== event.room_id)
  return foreign ? reject('auth-events.other-room', foreign, 'is of another room') : ALLOWED
}

const CREATE: StateKeyPair = ['m.room.create', '']

/** Compares types and state keys. The lists are short, so this is faster than building keys. An event that is not state equals no other. */
function areSameState(one: CitedEvent, other: CitedEvent): boolean {
  if (one === other) return true
  const { type, state_key: stateKey } = other.pdu
  return stateKey !== undefined && isAt(one, [type, stateKey])
}

function isAt({ pdu }: CitedEvent, [type, stateKey]: StateKeyPair): boolean {
  return pdu.state_key === stateKey && pdu.type === type
}
