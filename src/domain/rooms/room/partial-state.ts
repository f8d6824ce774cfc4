import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import { MAX_SERVERS_MEANWHILE } from '../../limits.ts'

const NONE: ReadonlySet<ServerName> = new Set()

/** Events that are held until the members of their room are known: how many, and the bytes of their JSON. */
export interface Held {
  readonly count: number
  readonly bytes: number
}

/**
 * The partial state of a room that we joined through another server: the answer left out most members (server-server API, `PUT send_join`,
 * `omit_members`).
 */
export class PartialState {
  readonly roomNid: number
  readonly roomId: RoomId
  readonly resident: ServerName
  /** The servers in the room, as the resident server says. */
  readonly servers: ReadonlySet<ServerName>
  /** Our join event. The missing members are part of the state before it. */
  readonly joinId: EventId
  /** How many rounds of the resync failed with every server. */
  failures: number
  readonly whole: Promise<void>
  /** What other servers sent during the resync, by server. */
  readonly held = new Map<ServerName, Held>()
  #stage: 'members' | 'arrears' | 'over' = 'members'
  #isComplete = false
  #resolve: () => void = () => {}

  constructor(
    of: Pick<PartialState, 'roomNid' | 'roomId' | 'resident' | 'joinId'> & {
      readonly servers: Iterable<ServerName>
      readonly failures?: number
    },
  ) {
    this.roomNid = of.roomNid
    this.roomId = of.roomId
    this.resident = of.resident
    this.servers = new Set([of.resident, ...[...of.servers].slice(0, MAX_SERVERS_MEANWHILE)])
    this.joinId = of.joinId
    this.failures = of.failures ?? 0
    this.whole = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** Most members are not known, so no event can be authorised by a sender's membership. */
  get lacksMembers(): boolean {
    return this.#stage === 'members'
  }

  /** The servers that get the room's events until the members are known. They also get our leave, if the resync never completed. */
  get serversMeanwhile(): ReadonlySet<ServerName> {
    return this.#isComplete ? NONE : this.servers
  }

  /** Whether events of other servers are held, or not all held events are processed. */
  get holdsEvents(): boolean {
    return this.#stage !== 'over'
  }

  /** All members are known. */
  complete(): void {
    if (this.#stage === 'members') this.#stage = 'arrears'
    this.#isComplete = true
    this.#resolve()
  }

  end(): void {
    this.#stage = 'over'
    this.#resolve()
  }
}

export function membersAreMissing(): ProtocolError {
  const text = 'The members of this room are still being fetched from other servers. Send the request again later.'
  return new ProtocolError('M_UNKNOWN', text, { status: 503, extra: { retry_after_ms: 5_000 } })
}
