import { createHmac } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'

/** What a client needs to use a TURN server (client-server API, "Voice over IP"). */
export interface TurnCredentials {
  readonly username: string
  readonly password: string
  readonly uris: readonly string[]
  /** Seconds. */
  readonly ttl: number
}

export interface Turn {
  /**
   * @throws ProtocolError `M_FORBIDDEN` when there is no TURN server, which tells clients not to ask again; `M_GUEST_ACCESS_FORBIDDEN` for
   *   guests that may not use it
   */
  credentialsFor(by: Requester): TurnCredentials
}

export function createTurn({ config, clock }: { readonly config: Pick<Config, 'calls'>; readonly clock: Clock }): Turn {
  const {
    uris,
    shared_secret: secret,
    user = '',
    password = '',
    lifetime_seconds: ttl,
    allow_guests,
  } = config.calls.turn
  return {
    credentialsFor({ userId, isGuest }) {
      if (uris.length === 0) throw new ProtocolError('M_FORBIDDEN', 'This server offers no TURN server.')
      if (isGuest && !allow_guests) {
        throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may not use the TURN servers here.')
      }
      if (secret === undefined) return { username: user, password, uris, ttl }
      return { ...expiring(secret, userId, Math.floor(clock.now() / 1000) + ttl), uris, ttl }
    },
  }
}

/**
 * Credentials that every server with the same secret accepts until a time (draft-uberti-behave-turn-rest-00, section 2.2).
 *
 * @param expiresAt seconds since the epoch
 */
export function expiring(
  secret: string,
  userId: string,
  expiresAt: number,
): Pick<TurnCredentials, 'username' | 'password'> {
  const username = `${expiresAt}:${userId}`
  return { username, password: createHmac('sha1', secret).update(username).digest('base64') }
}
