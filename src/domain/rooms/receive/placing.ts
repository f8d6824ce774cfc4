import type { ReadPdu } from '../../../core/event/read.ts'
import type { ServerName } from '../../../core/ids.ts'
import { setState } from '../../../core/state/trie.ts'
import type { Users } from '../../users.ts'
import type { Branches } from '../room/branches.ts'
import { changedMembers } from '../room/members.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { beforeChange, StateLog } from '../room/state-log.ts'
import type { Surroundings } from '../room/surroundings.ts'
import type { Noticing } from '../write/noticing.ts'
import type { Persister } from '../write/persister.ts'
import type { PolicyGate } from '../write/policy-gate.ts'
import type { Outcome } from '../write/unit.ts'
import { type Case, type Exclusion, NOT_NUMBERED, type Site } from './placing-case.ts'
import { judge } from './placing-checks.ts'
import { effectsOf, NO_EFFECTS } from './placing-effects.ts'
import { locateBefore, locateCurrent } from './placing-state.ts'
import { type Consequences, eventOf, tipsWith, unitOf } from './placing-unit.ts'

export interface Placed {
  readonly event: RoomEvent
  /** Resolves when the event is durable, or refused. */
  readonly outcome: Promise<Outcome>
}

export interface Placing {
  /**
   * Puts an event in its place: computes the state before it; authorises it by its auth events, by that state and by the room's current
   * state; and moves the room's head. Resolves when the event is queued; 'moved' when others wrote to the room. An event that is only
   * offered, and is not accepted, is not queued: the result says why.
   */
  place(room: Room, read: ReadPdu, around: Surroundings): Promise<Placed | Exclusion | 'moved'>
}

export interface PlacingParts {
  readonly serverName: ServerName
  readonly users: Users
  readonly persister: Persister
  readonly branches: Branches
  readonly policies: Pick<PolicyGate, 'objection'>
  readonly noticing: Noticing
}

/** How often local sends may come in between before the event is given up for now. */
const MAX_ATTEMPTS = 32

export function createPlacing(parts: PlacingParts): Placing {
  const { serverName, users, persister, branches, policies } = parts
  /** One try on the current head. There must be no await between the check that the head is unmoved and the queueing of what moves it. */
  async function attempt(one: Case): Promise<Placed | Exclusion | 'moved' | 'again'> {
    const { room, read } = one
    const head = room.pending
    const log = new StateLog(room, head, one.around.past !== undefined)
    const before = await locateBefore(branches, log, one, head)
    const exclusion = await judge(branches, one, before.state, head)
    if (exclusion && one.around.isOffered) return exclusion
    const { type, state_key: stateKey } = read.pdu
    const isChange = stateKey !== undefined && exclusion?.standing !== 'rejected'
    const keyId = isChange ? room.keys.intern(type, stateKey) : undefined
    const after = keyId === undefined ? before : log.set(before, keyId, one.nid, exclusion !== undefined)
    const site = { head, before, at: keyId === undefined ? before.point : beforeChange(after.point), keyId, exclusion }
    const fresh = eventOf(one, site, { nid: one.nid, streamPos: one.nid })
    const tips = tipsWith(one, site, fresh)
    const current = await locateCurrent(branches, log, room, head, after, tips, fresh)
    const changed = { from: head.state, to: current.state, fresh, memberships: one.around.claimedMemberships }
    const members = await changedMembers({ room, serverName, users, ...changed })
    const effects = exclusion ? NO_EFFECTS : await effectsOf(parts, one, fresh, before.state)
    if (!room.alive) return 'moved'
    if (room.pending !== head) return 'again'
    return enqueue(one, site, { log, tips, current, members, effects })
  }

  function enqueue(one: Case, site: Site, consequences: Consequences): Placed {
    const { room, around } = one
    const nid = one.nid === NOT_NUMBERED ? persister.takeNid() : one.nid
    const isNewest = around.outlier === undefined && persister.lastNid() === nid
    const event = eventOf(one, site, { nid, streamPos: isNewest ? nid : persister.takeNid() }, consequences)
    const unit = unitOf(one, site, consequences, event, () => persister.takeNid())
    room.enqueued(unit)
    room.keepBranch(
      event.pointAfter,
      site.keyId === undefined ? site.before.state : setState(site.before.state, site.keyId, nid),
    )
    const outcome = persister.enqueue(unit)
    // `record` reports a failure to the caller; until then other events are placed.
    outcome.catch(() => undefined)
    return { event, outcome }
  }

  return {
    async place(room, read, around) {
      const { sender, state_key: stateKey } = read.pdu
      const senderNid = (await users.intern([sender])).get(sender)!
      const nid = around.outlier?.nid ?? (stateKey === undefined ? NOT_NUMBERED : persister.takeNid())
      let asked: Promise<string | undefined> | undefined
      const objection = () => (asked ??= policies.objection(room, read))
      const one = { room, read, around, nid, senderNid, objection }
      for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
        const placed = await attempt(one)
        if (placed !== 'again') return placed
      }
      return 'moved'
    },
  }
}
