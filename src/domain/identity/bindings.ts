import { type Errcode, ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { normaliseAddress } from '../../core/threepid.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import {
  type BindingRow,
  deleteBinding,
  lockAddress,
  type ThreepidRow,
  upsertBinding,
} from '../../store/identity/bindings.ts'
import { handOverInvites, withdrawDeliveries } from '../../store/identity/invites.ts'
import { unnameChanges } from '../../store/identity/peppers.ts'
import type { Clock } from '../clock.ts'
import { type SignedAssociation, signedAssociation } from './association.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import type { IdentityKeys } from './keys.ts'
import type { IdentityRequester } from './requester.ts'

/** Proves that an address is the caller's: a validation session and its secret. */
export interface Proof {
  readonly sid: string
  readonly clientSecret: string
}

export interface Threepid {
  readonly medium: string
  readonly address: string
}

/** Bindings of addresses to users (identity service API, "Establishing associations"). */
export interface Bindings {
  /**
   * Binds the address of a validated session to a user. It replaces an earlier binding.
   *
   * @param by the requester; undefined in version 1 of the API, where anybody may bind to anybody
   * @throws ProtocolError `M_INVALID_PARAM`, 403 `M_UNAUTHORIZED` for another user than the requester, and errors of a session that is
   *   not validated
   */
  bind(proof: Proof, mxid: string, by: IdentityRequester | undefined): Promise<SignedAssociation>
  /**
   * Unbinds at the request of the address's owner. No error if it was not bound.
   * @throws ProtocolError `M_INVALID_PARAM`, `M_FORBIDDEN` if the session does not prove the address
   */
  unbind(proof: Proof, threepid: Threepid, mxid: string): Promise<void>
  /** Unbinds for the operator, and deletes every trace of the user. Returns whether it was still bound. */
  erase(binding: ThreepidRow & { readonly user_id: UserId }): Promise<boolean>
  /**
   * Unbinds at the signed request of the user's homeserver.
   * @throws ProtocolError `M_INVALID_PARAM`, `M_FORBIDDEN` if the user is not that server's
   */
  unbindFor(server: ServerName, threepid: Threepid, mxid: string): Promise<void>
}

/** The errors of a session that proves nothing. */
const NO_PROOF: ReadonlySet<Errcode> = new Set(['M_NO_VALID_SESSION', 'M_SESSION_EXPIRED', 'M_SESSION_NOT_VALIDATED'])

function checkUserId(mxid: string): UserId {
  if (isUserId(mxid)) return mxid
  throw new ProtocolError('M_INVALID_PARAM', "Key 'mxid' must be a user id (@localpart:server).")
}

function normalised({ medium, address }: Threepid): ThreepidRow {
  if (`${medium}${address}`.includes('\0'))
    throw new ProtocolError('M_INVALID_PARAM', "'threepid' holds a NUL character.")
  return { medium, address: normaliseAddress(medium, address) }
}

export function createBindings(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly keys: Pick<IdentityKeys, 'sign'>
  readonly sessions: { findValidated(proof: Proof): Promise<Threepid> }
  /** Woken when invitations wait to be delivered. */
  readonly deliveries: { wake(): void }
  readonly metrics: Pick<IdentityMetrics, 'binding'>
}): Bindings {
  const { db, clock, keys, sessions, deliveries, metrics } = deps

  async function publish(tx: Tx, binding: BindingRow, association: SignedAssociation): Promise<boolean> {
    await lockAddress(tx, binding)
    await upsertBinding(tx, binding)
    return handOverInvites(tx, { ...binding, association: JSON.stringify(association), now: binding.bound_at })
  }

  async function remove(threepid: ThreepidRow, userId: UserId, also?: (tx: Tx) => Promise<void>): Promise<boolean> {
    const isGone = await db.tx(async (tx) => {
      await lockAddress(tx, threepid)
      const isDeleted = await deleteBinding(tx, threepid, userId)
      if (isDeleted) await withdrawDeliveries(tx, threepid)
      if (isDeleted) await also?.(tx)
      return isDeleted
    })
    if (isGone) metrics.binding('unbind')
    return isGone
  }

  /** An unbind gives the same error for anything wrong with its credentials. */
  async function provenBy(proof: Proof): Promise<Threepid> {
    try {
      return await sessions.findValidated(proof)
    } catch (error) {
      if (!(error instanceof ProtocolError && NO_PROOF.has(error.errcode))) throw error
      throw new ProtocolError('M_FORBIDDEN', 'The session does not show that this address is yours.')
    }
  }

  return {
    async bind(proof, mxid, by) {
      const userId = checkUserId(mxid)
      if (by !== undefined && by.userId !== userId) {
        throw new ProtocolError('M_UNAUTHORIZED', 'An address can only be bound to yourself.', { status: 403 })
      }
      const threepid = normalised(await sessions.findValidated(proof))
      const binding = { ...threepid, user_id: userId, bound_at: clock.now() }
      const association = signedAssociation(keys, binding)
      if (await db.tx((tx) => publish(tx, binding, association))) deliveries.wake()
      metrics.binding('bind')
      return association
    },
    async unbind(proof, threepid, mxid) {
      const userId = checkUserId(mxid)
      const wanted = normalised(threepid)
      const proven = normalised(await provenBy(proof))
      if (proven.medium !== wanted.medium || proven.address !== wanted.address) {
        throw new ProtocolError('M_FORBIDDEN', 'The session is about another address.')
      }
      await remove(wanted, userId)
    },
    erase: (binding) => remove(binding, binding.user_id, (tx) => unnameChanges(tx, binding)),
    async unbindFor(server, threepid, mxid) {
      const userId = checkUserId(mxid)
      if (serverOf(userId) !== server) {
        throw new ProtocolError('M_FORBIDDEN', `${server} does not speak for users of other servers.`)
      }
      await remove(normalised(threepid), userId)
    },
  }
}
