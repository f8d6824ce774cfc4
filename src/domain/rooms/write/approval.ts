import { ProtocolError } from '../../../core/errors.ts'
import { MAX_EVENT_BYTES, type Pdu } from '../../../core/event/format.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { MAX_POLICY_ROUNDS } from '../../limits/policy-servers.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { NeedsApproval } from './needs.ts'
import type { PolicyGate } from './policy-gate.ts'

/**
 * The signatures of a policy server for the events of one write. An event is built, signed there, and then built again, the same to the
 * byte if no other came into the room meanwhile: between building and queueing an event there can be no wait.
 */
export class Approval {
  readonly #room: Room
  readonly #gate: Pick<PolicyGate, 'sign'>
  /** By the events' JSON. In some room versions the id says nothing of what an event builds on. */
  readonly #signatures = new Map<string, Pdu['signatures'] | undefined>()
  #rounds = 0

  constructor(room: Room, gate: Pick<PolicyGate, 'sign'>) {
    this.#room = room
    this.#gate = gate
  }

  /** The events with their signatures. @throws NeedsApproval when some have not been signed */
  signed(events: readonly RoomEvent[]): RoomEvent[] {
    const missing = events.filter(({ json }) => !this.#signatures.has(json))
    if (missing.length > 0) throw new NeedsApproval(missing)
    return events.map((event) => {
      const signatures = this.#signatures.get(event.json)
      return signatures === undefined ? event : withSignatures(event, signatures)
    })
  }

  /** Has events signed. @throws ProtocolError the refusal of the policy server */
  async ask(events: readonly RoomEvent[]): Promise<void> {
    if (++this.#rounds > MAX_POLICY_ROUNDS) {
      throw new ProtocolError('M_UNKNOWN', 'The room is too busy just now. Send the request again.', { status: 503 })
    }
    this.#signatures.clear()
    const signatures = await Promise.all(events.map((event) => this.#gate.sign(this.#room, event)))
    events.forEach(({ json }, index) => void this.#signatures.set(json, signatures[index]))
  }
}

function withSignatures(event: RoomEvent, signatures: Pdu['signatures']): RoomEvent {
  const pdu = { ...event.pdu, signatures }
  const json = encodeCanonical(pdu)
  if (Buffer.byteLength(json) > MAX_EVENT_BYTES) {
    throw new ProtocolError('M_TOO_LARGE', 'With the signature of the policy server, the event is too large.')
  }
  return new RoomEvent({ ...event.toRow(), json }, pdu)
}
