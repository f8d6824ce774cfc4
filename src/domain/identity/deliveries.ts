import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { isServerName, type ServerName, serverOf } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import {
  claimDeliveries,
  type DeliveryRow,
  findInvitesOf,
  findNextDueDelivery,
  markDelivered,
  postponeDelivery,
} from '../../store/identity/invites.ts'
import type { Clock } from '../clock.ts'
import type { HomeserverAnswer, HomeserverCalls } from './homeserver-calls.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import type { IdentityKeys } from './keys.ts'

/** The homeserver in this process, called without HTTP. */
export interface OwnHomeserver {
  readonly serverName: ServerName
  /** Processes the body of `3pid/onbind`. @throws Error if it must be delivered again */
  bound(body: JsonObject): Promise<void>
}

/** Signals that invitations are due: whoever binds an address wakes it, the deliverer listens. */
export interface DueDeliveries {
  /** Signals that something is due. */
  wake(): void
  /** Calls the listener at every wake. */
  onWake(listener: () => void): void
}

export function createDueDeliveries(): DueDeliveries {
  const listeners: (() => void)[] = []
  return {
    wake() {
      for (const listener of listeners) listener()
    },
    onWake: (listener) => void listeners.push(listener),
  }
}

/**
 * Delivers waiting invitations to the homeserver of a user who bound the address (server-server API, `3pid/onbind`). The queue is a
 * table: it survives restarts, and processes share it. A homeserver that accepted its invitations never gets them again.
 */
export interface InviteDeliveries {
  /** Calls the listener whenever something is due. */
  onWake(listener: () => void): void
  /** Delivers what is due and returns how many deliveries it tried. It never fails: a failed delivery is due again later. */
  deliverDue(): Promise<number>
}

const AT_ONCE = 10
/** A process may die after it took a delivery. Another one may take it after this time. */
const LEASE_MS = 120_000
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 3_600_000
const DAY_MS = 86_400_000
/** Some 40 KiB. */
const INVITES_AT_ONCE = 50
const ONBIND = 'federation/v1/3pid/onbind'

export function createInviteDeliveries(deps: {
  readonly config: Pick<Config, 'identity' | 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly keys: Pick<IdentityKeys, 'sign'>
  readonly homeservers: HomeserverCalls
  readonly ownHomeserver: OwnHomeserver | undefined
  readonly due: DueDeliveries
  readonly metrics: Pick<IdentityMetrics, 'invitations'>
  readonly log: Logger
}): InviteDeliveries {
  const { config, db, clock, keys, homeservers, ownHomeserver, due, metrics, log } = deps
  const keptMs = config.identity.invites.delivery_days * DAY_MS

  /** In parts: the request is unsigned, and servers read little of an unsigned body. */
  async function bodiesOf({ delivery_nid, user_id: mxid, association }: DeliveryRow): Promise<JsonObject[]> {
    const rows = await findInvitesOf(db, delivery_nid)
    const invites = rows.map(({ medium, address, room_id, sender, token }) => ({
      ...{ medium, address, mxid, room_id, sender, token },
      signed: keys.sign({ mxid, token }),
    }))
    const parts = Array.from({ length: Math.ceil(invites.length / INVITES_AT_ONCE) }, (_, part) =>
      invites.slice(part * INVITES_AT_ONCE, (part + 1) * INVITES_AT_ONCE),
    )
    return parts.map((part) => ({ ...(JSON.parse(association) as JsonObject), invites: part }))
  }

  async function send(server: ServerName, body: JsonObject): Promise<void> {
    if (server === ownHomeserver?.serverName) return ownHomeserver.bound(body)
    if (!isServerName(server)) throw new Error('no server name')
    let answer = await homeservers.call(server, { method: 'PUT', path: ONBIND, body })
    // The specification says PUT, but servers in use only answer POST.
    if (isUnknownMethod(answer)) answer = await homeservers.call(server, { method: 'POST', path: ONBIND, body })
    if (answer.status < 200 || answer.status > 299) throw new Error(`it answered ${answer.status}`)
  }

  async function postpone({ delivery_nid, created_at, attempts }: DeliveryRow, server: string, reason: string) {
    const now = clock.now()
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20), LONGEST_PAUSE_MS)
    const isLast = now + pause - created_at > keptMs
    await db.tx((tx) => postponeDelivery(tx, delivery_nid, isLast ? undefined : now + pause))
    metrics.invitations(isLast ? 'given_up' : 'failed', 1)
    const message = isLast ? 'invitations are not delivered any more' : 'invitations were not delivered yet'
    log[isLast ? 'warn' : 'info']({ server, attempts, reason }, message)
  }

  async function deliver(delivery: DeliveryRow): Promise<void> {
    const server = serverOf(delivery.user_id)
    try {
      for (const body of await bodiesOf(delivery)) await send(server, body)
    } catch (error) {
      return postpone(delivery, server, (error as Error).message)
    }
    const count = await db.tx((tx) => markDelivered(tx, delivery.delivery_nid, clock.now()))
    metrics.invitations('delivered', count)
  }

  return {
    onWake: due.onWake,
    async deliverDue() {
      const now = clock.now()
      // Asked every few seconds: a read costs less than a transaction.
      const next = await findNextDueDelivery(db)
      if (next === undefined || next > now) return 0
      const due = await db.tx((tx) => claimDeliveries(tx, now, now + LEASE_MS, AT_ONCE))
      await Promise.all(due.map(deliver))
      return due.length
    },
  }
}

function isUnknownMethod({ status, body }: HomeserverAnswer): boolean {
  return status === 404 || status === 405 || (isObject(body) && body.errcode === 'M_UNRECOGNIZED')
}
