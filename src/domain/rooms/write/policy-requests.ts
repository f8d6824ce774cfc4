import { createCache } from '../../../core/cache.ts'
import { ProtocolError } from '../../../core/errors.ts'
import type { Pdu } from '../../../core/event/format.ts'
import { isApproved, POLICY_KEY_ID, type RoomPolicy } from '../../../core/event/policy.ts'
import type { ServerName } from '../../../core/ids.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { addSignature, signatureOf } from '../../../core/signing/json-signature.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Clock } from '../../clock.ts'
import {
  MAX_POLICY_REQUESTS_AT_ONCE,
  MAX_POLICY_REQUESTS_WAITING,
  POLICY_SERVER_PAUSE_MS,
} from '../../limits/policy-servers.ts'

/** What a policy server is asked about. */
export interface AskedEvent {
  readonly version: RoomVersion
  readonly pdu: Pdu
  /** Canonical JSON. */
  readonly json: string
}

/** Gives the event's signatures together with the valid one of the policy server. @throws ProtocolError the policy server's refusal */
export type PolicyRequests = (policy: RoomPolicy, event: AskedEvent, timeoutMs: number) => Promise<Pdu['signatures']>

interface Line {
  running: number
  readonly waiting: (() => void)[]
}

const REMEMBERED_FAILURES = 1_000

/**
 * Asks policy servers. A few requests run at a time for each server, so that its rooms share it. After a failure, those that wait fail
 * too: every one of them would wait for an answer that does not come.
 */
export function createPolicyRequests({
  peers,
  clock,
}: {
  readonly peers: Pick<Peers, 'signByPolicy'>
  readonly clock: Clock
}): PolicyRequests {
  const lines = new Map<ServerName, Line>()
  const failures = createCache<ServerName, { readonly error: ProtocolError; readonly until: number }>(
    REMEMBERED_FAILURES,
  )

  async function enter(via: ServerName): Promise<() => void> {
    const line = lines.get(via) ?? { running: 0, waiting: [] }
    lines.set(via, line)
    if (line.running < MAX_POLICY_REQUESTS_AT_ONCE) line.running++
    else if (line.waiting.length < MAX_POLICY_REQUESTS_WAITING) await new Promise<void>((go) => line.waiting.push(go))
    else
      throw new ProtocolError('M_UNKNOWN', 'The policy server of this room is asked too much just now.', {
        status: 503,
      })
    return () => {
      const next = line.waiting.shift()
      if (next) next()
      else if (--line.running === 0) lines.delete(via)
    }
  }

  function mustBeInReach(via: ServerName): void {
    const failure = failures.get(via)
    if (failure !== undefined && failure.until > clock.now()) throw failure.error
  }

  return async (policy, { version, pdu, json }, timeoutMs) => {
    const { via, publicKey, isUnstable } = policy
    mustBeInReach(via)
    const leave = await enter(via)
    try {
      mustBeInReach(via)
      const answer = await peers.signByPolicy(via, json, { isUnstable, timeoutMs })
      const signature = signatureOf({ signatures: answer }, via, POLICY_KEY_ID)
      const signatures = signature === undefined ? undefined : addSignature(pdu, via, POLICY_KEY_ID, signature)
      if (signatures && isApproved(version, { ...pdu, signatures }, { via, publicKey, isUnstable })) return signatures
      throw new ProtocolError('M_FORBIDDEN', `The policy server of this room, ${via}, has not signed the event.`)
    } catch (error) {
      const isAway = error instanceof ProtocolError && error.status >= 500
      if (isAway) failures.set(via, { error, until: clock.now() + POLICY_SERVER_PAUSE_MS })
      throw error
    } finally {
      leave()
    }
  }
}
