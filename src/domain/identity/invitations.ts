import type { Config } from '../../config/schema.ts'
import { decodeBase64 } from '../../core/base64.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isRoomId, isUserId, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { redactEmail } from '../../core/redact-address.ts'
import { type Signatures, signJson } from '../../core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../core/signing/key.ts'
import { isEmailAddress, normaliseAddress } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { findBinding, lockAddress } from '../../store/identity/bindings.ts'
import { deleteWaitingInvite, findInviteSender, insertInvite } from '../../store/identity/invites.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_INVITE_CHARS } from '../limits.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import { type InviteRequest, type InviteSecrets, inviteMailValues } from './invite-mail.ts'
import type { IdentityKeys } from './keys.ts'
import type { LookupQuota } from './lookup-quota.ts'
import type { Look, Messenger } from './messenger.ts'
import type { IdentityRequester } from './requester.ts'
import type { SendLimits } from './send-limits.ts'

/** The requester of an invitation, and the look of the mail. */
export interface Inviter {
  /** Undefined in version 1 of the API. */
  readonly requester: IdentityRequester | undefined
  /** The key of the mail limit: a user, or a network address if there is no user. */
  readonly who: string
  readonly look: Look
}

export interface StoredInvite {
  readonly token: string
  /** The address, masked for others. */
  readonly displayName: string
  /** The short-term key, in unpadded base64. */
  readonly publicKey: string
}

export type SignedInvite = { mxid: UserId; sender: UserId; token: string; signatures: Signatures }

/** Invitations of addresses that nobody has bound (identity service API, "Invitation storage"). */
export interface Invitations {
  /**
   * Stores an invitation and mails it.
   *
   * @param asked the request's body
   * @throws ProtocolError 400 `M_UNRECOGNIZED` for another medium than email, `M_INVALID_EMAIL`, `M_INVALID_PARAM`, 403 `M_UNAUTHORIZED`
   *   for another sender than the requester, `M_THREEPID_IN_USE` with `mxid`, `M_EMAIL_SEND_ERROR`, `M_LIMIT_EXCEEDED`
   */
  store(asked: JsonObject, by: Inviter): Promise<StoredInvite>
  /**
   * Signs that a user accepts an invitation, with the key that its mail contained.
   * @throws ProtocolError `M_INVALID_PARAM`, 404 `M_UNRECOGNIZED` for an unknown token
   */
  sign(asked: { readonly mxid: string; readonly token: string; readonly privateKey: string }): Promise<SignedInvite>
}

const TOKEN_BYTES = 48
const SEED_BYTES = 32
const TOKEN = /^[0-9a-zA-Z.=_-]{1,255}$/
const DAY_MS = 86_400_000
/** Ids of short-term keys may be the same: a verifier tries every key that the invitation names. */
const EPHEMERAL_KEY_ID = 'ed25519:0'

const TEXTS = [
  ...['room_alias', 'room_avatar_url', 'room_join_rules', 'room_name', 'room_type'],
  ...['sender_display_name', 'sender_avatar_url'],
]

function invalid(name: string, expected: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', `Key '${name}' ${expected}.`)
}

function checkDetails(details: JsonObject): void {
  for (const name of TEXTS) {
    const value = details[name]
    if (value !== undefined && value !== null && typeof value !== 'string') throw invalid(name, 'must be a string')
  }
  if (JSON.stringify(details).length > MAX_INVITE_CHARS) {
    throw new ProtocolError('M_TOO_LARGE', 'There is too much in this invitation.', { status: 400 })
  }
}

/** Checks everything that can be checked before anything is stored or sent. */
function checkRequest(asked: JsonObject, requester: IdentityRequester | undefined): InviteRequest {
  const { medium, address, room_id: roomId, sender, ...details } = asked
  if (medium !== 'email') {
    throw new ProtocolError('M_UNRECOGNIZED', 'Only email addresses can be invited.', { status: 400 })
  }
  const normal = normaliseAddress('email', String(address))
  if (!isEmailAddress(String(address)) || !isEmailAddress(normal)) {
    throw new ProtocolError('M_INVALID_EMAIL', 'This is not an email address.')
  }
  if (!isRoomId(roomId)) throw invalid('room_id', 'must be a room id')
  if (!isUserId(sender)) throw invalid('sender', 'must be a user id (@localpart:server)')
  if (requester !== undefined && requester.userId !== sender) {
    throw new ProtocolError('M_UNAUTHORIZED', 'You can only invite in your own name.', { status: 403 })
  }
  checkDetails(details)
  return { address: normal, roomId, sender, details }
}

export function createInvitations(deps: {
  readonly config: Pick<Config, 'identity' | 'server_name' | 'public_base_url' | 'listen'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly keys: Pick<IdentityKeys, 'createEphemeral'>
  readonly messenger: Pick<Messenger, 'mail'>
  readonly quota: LookupQuota
  readonly sendLimits: SendLimits
  readonly metrics: Pick<IdentityMetrics, 'invitations'>
}): Invitations {
  const { config, db, clock, random, keys, messenger, quota, sendLimits, metrics } = deps
  const { lifetime_days: lifetimeDays, shown_letters: shownLetters } = config.identity.invites

  /** Locks the address, so that nobody can bind it between the check and the invitation. */
  async function keep(request: InviteRequest): Promise<StoredInvite & InviteSecrets> {
    const { address, roomId, sender, details } = request
    const now = clock.now()
    const expiresAt = lifetimeDays === 0 ? undefined : now + lifetimeDays * DAY_MS
    const token = random.bytes(TOKEN_BYTES).toString('base64url')
    const displayName = redactEmail(address, shownLetters)
    const threepid = { medium: 'email', address }
    return db.tx(async (tx) => {
      await lockAddress(tx, threepid)
      const bound = await findBinding(tx, threepid)
      if (bound !== undefined) throw inUse(bound.user_id)
      const { publicKey, privateKey } = await keys.createEphemeral(tx, expiresAt)
      await insertInvite(tx, {
        ...threepid,
        ...{ token, sender, room_id: roomId, display_name: displayName, public_key: publicKey },
        ...{ details: JSON.stringify(details), created_at: now, expires_at: expiresAt ?? null },
      })
      return { token, displayName, publicKey, privateKey }
    })
  }

  function inUse(mxid: UserId): ProtocolError {
    return new ProtocolError('M_THREEPID_IN_USE', 'This address is bound to a user.', { extra: { mxid } })
  }

  return {
    async store(asked, { requester, who, look }) {
      const request = checkRequest(asked, requester)
      const { address } = request
      // The answer reveals whether the address is bound, and to whom, as a lookup does.
      await quota.spend(who, 1)
      const bound = await findBinding(db, { medium: 'email', address })
      if (bound !== undefined) throw inUse(bound.user_id)
      await sendLimits.take({ medium: 'email', address, sender: who })
      const invite = await keep(request)
      try {
        await messenger.mail('invite.mail', address, inviteMailValues(config, request, invite), look)
      } catch (error) {
        // If the address was bound meanwhile, the homeserver is being told, so the mail is not needed.
        if (await db.tx((tx) => deleteWaitingInvite(tx, invite.token))) throw error
      }
      metrics.invitations('stored', 1)
      return invite
    },
    async sign({ mxid, token, privateKey }) {
      if (!isUserId(mxid)) throw invalid('mxid', 'must be a user id (@localpart:server)')
      const seed = decodeBase64(privateKey.replaceAll(' ', '+'))
      if (seed?.length !== SEED_BYTES) throw invalid('private_key', 'must be an ed25519 key in unpadded base64')
      const sender = TOKEN.test(token) ? await findInviteSender(db, token, clock.now()) : undefined
      if (sender === undefined) throw new ProtocolError('M_UNRECOGNIZED', 'There is no invitation with this token.')
      return signJson({ mxid, sender, token }, config.server_name, signingKeyFromSeed(EPHEMERAL_KEY_ID, seed))
    },
  }
}
