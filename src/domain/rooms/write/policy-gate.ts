import { ProtocolError } from '../../../core/errors.ts'
import type { Pdu } from '../../../core/event/format.ts'
import {
  isApproved,
  isBeyondPolicy,
  POLICY,
  policyIn,
  type RoomPolicy,
  UNSTABLE_POLICY,
  unstablePolicyIn,
} from '../../../core/event/policy.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { ServerName } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { getJoinedUsers } from '../../../store/rooms/rooms.ts'
import { POLICY_ANSWER_MS, POLICY_ANSWER_TO_OTHERS_MS } from '../../limits/policy-servers.ts'
import type { Room } from '../room/room.ts'
import type { Draft } from './draft.ts'
import type { PolicyRequests } from './policy-requests.ts'

/** The policy servers of rooms (server-server API, "Policy Servers"): they see each event before the room does. */
export interface PolicyGate {
  /** Whether the current state of a room may name a policy server. For all other rooms nothing else is called. */
  mayApply(room: Room): boolean
  /**
   * The signatures of an event of ours, with that of the room's policy server; undefined when it needs none.
   *
   * @throws ProtocolError the refusal of the policy server, in its words; 502 `M_UNKNOWN` when it does not answer
   */
  sign(room: Room, event: Pick<ReadPdu, 'pdu' | 'json'>): Promise<Pdu['signatures'] | undefined>
  /** Why an event of another server is not recommended; undefined if it is. Asks for a signature if the event has no valid one. */
  objection(room: Room, event: ReadPdu): Promise<string | undefined>
}

/** Whether a draft needs no policy server's word. */
export const isDraftBeyondPolicy = ({ type, stateKey }: Draft): boolean =>
  isBeyondPolicy({ type, ...(stateKey !== undefined && { state_key: stateKey }) })

export function createPolicyGate({
  serverName,
  db,
  ask,
}: {
  readonly serverName: ServerName
  readonly db: Database
  readonly ask: PolicyRequests
}): PolicyGate {
  async function isIn(room: Room, server: ServerName): Promise<boolean> {
    if (room.partialState?.serversMeanwhile.has(server)) return true
    return (await room.servers.of(() => getJoinedUsers(db, room.nid))).has(server)
  }

  /** The room's policy server. If it is this server, there is nobody to ask. */
  async function policyOf(room: Room): Promise<RoomPolicy | undefined> {
    const { state } = room.pending
    const stated = await room.stateEvent(POLICY, '', state)
    const proposed = stated ? undefined : await room.stateEvent(UNSTABLE_POLICY, '', state)
    const policy = stated ? policyIn(stated.content) : proposed && unstablePolicyIn(proposed.content)
    if (policy === undefined || policy.via === serverName) return undefined
    return (await isIn(room, policy.via)) ? policy : undefined
  }

  const mayApply: PolicyGate['mayApply'] = (room) => {
    const { state } = room.pending
    return room.stateNid(state, POLICY, '') !== 0 || room.stateNid(state, UNSTABLE_POLICY, '') !== 0
  }

  return {
    mayApply,

    async sign(room, { pdu, json }) {
      if (isBeyondPolicy(pdu)) return undefined
      const policy = await policyOf(room)
      return policy && ask(policy, { version: room.version, pdu, json }, POLICY_ANSWER_MS)
    },

    async objection(room, { pdu, json, signedText }) {
      if (!mayApply(room) || isBeyondPolicy(pdu)) return undefined
      const policy = await policyOf(room)
      if (!policy || isApproved(room.version, pdu, policy, signedText)) return undefined
      try {
        await ask(policy, { version: room.version, pdu, json }, POLICY_ANSWER_TO_OTHERS_MS)
        return undefined
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        return `by the policy server ${policy.via}: ${error.message}`
      }
    },
  }
}
